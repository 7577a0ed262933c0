// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/klog/v2"

	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/memory"
)

// served is a program that serves metrics, with the observer of its trial.
type served struct {
	t        *testing.T
	server   *httptest.Server
	get      *corev1.HTTPGetAction
	store    observation.Store
	warnings []string
	at       time.Time

	mu     sync.Mutex
	status int
	page   string
	asked  int
}

func serve(t *testing.T) *served {
	s := &served{t: t, store: memory.New(), status: http.StatusOK, at: now()}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked++
		if r.URL.Path != "/metrics" || r.Header.Get("X-Test") != "yes" {
			t.Errorf("asked for %s with %v", r.URL, r.Header)
		}
		w.WriteHeader(s.status)
		fmt.Fprint(w, s.page)
	}))
	t.Cleanup(s.server.Close)
	port := netip.MustParseAddrPort(s.server.Listener.Addr().String()).Port()
	s.get = &corev1.HTTPGetAction{Path: "/metrics", Port: intstr.FromInt32(int32(port)), HTTPHeaders: []corev1.HTTPHeader{{Name: "X-Test", Value: "yes"}}}
	return s
}

func (s *served) show(status int, page string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.page = status, page
}

func (s *served) observer() Observer {
	s.t.Helper()
	c := New(nil, s.store, DefaultConfig())
	o, err := c.observer(klog.Background(), &Spec{Trial: trial(), Kind: Prometheus, Page: s.get, Metrics: []string{"loss", "accuracy"}}, Subject{
		Pod: &corev1.Pod{}, Container: "main", Address: "127.0.0.1",
		Warn: func(message string) { s.warnings = append(s.warnings, message) },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(o.Close)
	return o
}

// look lets the observer read the page once.
func (s *served) look(o Observer) {
	s.t.Helper()
	s.at = s.at.Add(time.Hour)
	if err := o.Look(s.t.Context(), s.at); err != nil {
		s.t.Fatal(err)
	}
	o.(*scraper).request.Wait()
	if err := o.Look(s.t.Context(), s.at); err != nil {
		s.t.Fatal(err)
	}
}

func (s *served) finish(o Observer) {
	s.t.Helper()
	finish(s.t, o, s.at)
}

func (s *served) want(reason string, stored ...string) {
	s.t.Helper()
	want(s.t, s.store, reason, stored)
}

func TestScrape(t *testing.T) {
	t.Parallel()
	s := serve(t)
	o := s.observer()
	s.show(200, "loss 3\naccuracy 0.1\nother 7\n")
	s.look(o)
	s.look(o)
	s.show(200, "loss 2\naccuracy 0.1\n")
	s.look(o)
	s.show(200, "loss 1\naccuracy 0.1\n")
	s.finish(o)
	s.want("What changes is stored, and what is there as the program ends.", "loss=3", "accuracy=0.1", "loss=2", "loss=1")
	if len(s.warnings) > 0 {
		t.Errorf("warnings: %q", s.warnings)
	}
}

// TestScrapeGoesOn ends the collector once its points are stored and before.
func TestScrapeGoesOn(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.show(200, "loss 3\n")
	o := s.observer()
	s.look(o)
	s.finish(o)
	s.look(s.observer())
	s.show(200, "loss 2\n")
	s.look(s.observer()) // which has not stored it yet
	o = s.observer()
	s.look(o)
	s.server.Close()
	s.finish(o)
	s.want("Nothing is stored twice.", "loss=3", "loss=2")
}

func TestScrapeInterrupted(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.show(200, "loss 3\n")
	o := s.observer()
	s.look(o)
	if err := o.Discard(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.Close()
	s.want("What an interrupted run served is forgotten.")
	s.finish(s.observer())
	s.want("The next run begins anew.", "loss=3")
}

func TestScrapeProblems(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		status int
		page   string
		warn   string
	}{
		"Status":    {reason: "A wrong path shows.", status: 404, warn: "the response is 404 Not Found"},
		"Malformed": {reason: "So does what is no page of metrics.", status: 200, page: "{}", warn: "not in Prometheus's text format"},
		"Absent":    {reason: "And a page without the objective.", status: 200, page: "accuracy 1\n", warn: "never had the objective metric loss"},
		"Unclear":   {reason: "And one with two of it.", status: 200, page: "loss{a=\"1\"} 1\nloss{a=\"2\"} 1\n", warn: "loss has 2 series"},
		"Long":      {reason: "And one without end.", status: 200, page: strings.Repeat("x 1\n", 3<<20), warn: "more than 8388608 bytes"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			s.show(tc.status, tc.page)
			o := s.observer()
			s.look(o)
			s.finish(o)
			if got := strings.Join(s.warnings, "\n"); !strings.Contains(got, tc.warn) {
				t.Errorf("%s warnings: %q, want %q in them", tc.reason, got, tc.warn)
			}
		})
	}
}

// TestScrapeNobody checks that a page that is never served ends in a warning,
// and a program that begins to serve late in none.
func TestScrapeNobody(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.server.Close()
	o := s.observer()
	s.look(o)
	if len(s.warnings) > 0 {
		t.Errorf("warnings while the program may still start: %q", s.warnings)
	}
	s.look(o) // an hour later
	s.finish(o)
	s.warnings = slices.Compact(s.warnings)
	if len(s.warnings) != 2 || !strings.Contains(s.warnings[0], "connection refused") || !strings.Contains(s.warnings[1], "not even when the program ended") {
		t.Errorf("warnings: %q", s.warnings)
	}
	s.want("Nothing is stored.")
}

// TestScrapeHangs checks that a program that accepts and says nothing holds
// nobody up.
func TestScrapeHangs(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s := serve(t)
	s.get.Port = intstr.FromInt32(int32(netip.MustParseAddrPort(listener.Addr().String()).Port()))
	o := s.observer()
	o.(*scraper).config.ScrapeTimeout = 10 * time.Millisecond
	s.look(o)
	s.finish(o)
	if len(s.warnings) != 1 || !strings.Contains(s.warnings[0], "deadline exceeded") {
		t.Errorf("warnings: %q", s.warnings)
	}
	o = s.observer()
	if err := o.Look(t.Context(), s.at); err != nil {
		t.Fatal(err)
	}
	o.Close() // ends the request that is under way
}

func TestScrapePause(t *testing.T) {
	t.Parallel()
	o := &scraper{config: DefaultConfig(), since: now()}
	for age, want := range map[time.Duration]time.Duration{0: 200 * time.Millisecond, 2 * time.Second: 400 * time.Millisecond, time.Hour: time.Second} {
		if got := o.pause(now().Add(age)); got != want {
			t.Errorf("after %v: pause %v, want %v", age, got, want)
		}
	}
}
