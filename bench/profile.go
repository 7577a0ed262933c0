// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// processorProfile is for how long a profile of the processor is taken.
const processorProfile = 15 * time.Second

// profiler takes Go's profiles of a server into a directory, of its memory and
// then of its processor. The zero profiler takes none.
type profiler struct{ dir, socket string }

// newProfiler finds a path where a server can serve its profiles.
func newProfiler(dir string) (profiler, error) {
	if dir == "" {
		return profiler{}, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return profiler{}, err
	}
	socket, err := filepath.Abs(filepath.Join(dir, "socket"))
	return profiler{dir, socket}, err
}

// arguments are those of `diwan up`.
func (p profiler) arguments() []string {
	if p.dir == "" {
		return nil
	}
	return []string{"--pprof", p.socket}
}

// take writes NAME.heap, NAME.goroutines and NAME.cpu.
func (p profiler) take(ctx context.Context, name string) error {
	if p.dir == "" {
		return nil
	}
	for _, profile := range []struct{ path, suffix string }{
		{"heap?gc=1", "heap"},
		{"goroutine", "goroutines"},
		{fmt.Sprintf("profile?seconds=%.0f", processorProfile.Seconds()), "cpu"},
	} {
		if err := p.fetch(ctx, profile.path, filepath.Join(p.dir, name+"."+profile.suffix)); err != nil {
			return fmt.Errorf("cannot take a profile: %w", err)
		}
	}
	return nil
}

func (p profiler) fetch(ctx context.Context, path, file string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://diwan/debug/pprof/"+path, nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", p.socket)
	}}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", path, resp.Status, body)
	}
	return os.WriteFile(file, body, 0o644)
}
