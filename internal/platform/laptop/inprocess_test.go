// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// send sends a GET to handler within the process.
func send(t *testing.T, ctx context.Context, handler http.HandlerFunc) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://kubernetes.default.svc/path?q=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	return inProcess{handler: handler}.RoundTrip(req)
}

func TestInProcessAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason  string
		handler http.HandlerFunc
		status  int
		body    string
	}{
		{"a handler that does nothing answers as a server does", func(http.ResponseWriter, *http.Request) {}, 200, ""},
		{"the path and the query arrive", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RequestURI) }, 200, "/path?q=1"},
		{"the first status counts", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTeapot)
			w.WriteHeader(http.StatusOK)
			fmt.Fprint(w, "tea")
		}, 418, "tea"},
		{"headers that come after the status are not sent", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Early", "yes")
			w.WriteHeader(http.StatusOK)
			w.Header().Set("Late", "yes")
		}, 200, ""},
	} {
		response, err := send(t, t.Context(), tc.handler)
		if err != nil {
			t.Errorf("%s: %v", tc.reason, err)
			continue
		}
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != tc.status || string(body) != tc.body {
			t.Errorf("%s: got %d %q (%v), want %d %q", tc.reason, response.StatusCode, body, err, tc.status, tc.body)
		}
		if response.Header.Get("Late") != "" {
			t.Errorf("%s: a late header was sent", tc.reason)
		}
		response.Body.Close()
	}
}

func TestInProcessStreams(t *testing.T) {
	t.Parallel()
	next, gone := make(chan bool), make(chan bool)
	response, err := send(t, t.Context(), func(w http.ResponseWriter, r *http.Request) {
		for i := 0; ; i++ {
			fmt.Fprintln(w, "event", i)
			w.(http.Flusher).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				close(gone)
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(response.Body)
	for i := range 3 {
		if !lines.Scan() || lines.Text() != fmt.Sprint("event ", i) {
			t.Fatalf("read %q (%v), want event %d while the handler goes on", lines.Text(), lines.Err(), i)
		}
		next <- true
	}
	response.Body.Close()
	<-gone // the handler learns that nobody listens
}

func TestInProcessEndsWithItsClient(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	response, err := send(t, ctx, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.ReadAll(response.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("reading a cancelled answer gives %v, want that it was cancelled", err)
	}
	response.Body.Close()
	if _, err := send(t, ctx, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that was cancelled before its answer gives %v", err)
	}
}

func TestInProcessFailures(t *testing.T) {
	t.Parallel()
	_, err := send(t, t.Context(), func(http.ResponseWriter, *http.Request) { panic("out of order") })
	if err == nil || !strings.Contains(err.Error(), "out of order") {
		t.Errorf("a handler that panics gives %v, want an error with its reason", err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://kubernetes.default.svc/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Upgrade", "SPDY/3.1")
	if _, err := (inProcess{}).RoundTrip(req); err == nil {
		t.Error("an upgrade was accepted")
	}
}
