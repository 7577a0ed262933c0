// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"net"
	"net/http"
	"testing"
)

const testToken = "a-token-of-enough-characters-for-tests"

// openTest opens a registry in a directory of its own.
func openTest(t testing.TB, change ...func(*Config)) *Registry {
	t.Helper()
	config := Config{
		Dir:       t.TempDir(),
		Authorize: TokenPolicy(testToken, true),
		Log:       func(req *http.Request, err error) { t.Errorf("%s %s: %v", req.Method, req.URL, err) },
	}
	for _, c := range change {
		c(&config)
	}
	r, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// serveTest serves a registry on a loopback address, which it returns, until
// the test ends.
func serveTest(t testing.TB, r *Registry) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx, listener) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
