// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"time"
)

// serveProfiles serves Go profiles, on a Unix socket that only this user can
// open, until stop is called.
func serveProfiles(path string) (stop func(), err error) {
	listener, err := listenPrivately(path)
	if err != nil {
		return nil, fmt.Errorf("cannot serve profiles on %s: %w", path, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends by Close alone
	}()
	return func() {
		_ = server.Close()
		<-done
		os.Remove(path)
	}, nil
}

// listenPrivately makes a Unix socket at path. It comes there with its mode: until
// then it is in a directory that others cannot enter.
func listenPrivately(path string) (net.Listener, error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".diwan-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	listener, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		return nil, err
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	if err = os.Chmod(filepath.Join(dir, "s"), 0o600); err == nil {
		err = os.Rename(filepath.Join(dir, "s"), path)
	}
	if err != nil {
		listener.Close()
		return nil, err
	}
	return listener, nil
}
