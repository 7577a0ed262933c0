// SPDX-License-Identifier: Apache-2.0

package observationtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"diwan.dev/diwan/observation"
)

// Server is a database server that a store uses.
type Server interface {
	// Address is the host:port that it listens on.
	Address() string
	// Kill ends it as SIGKILL does.
	Kill()
	// Start starts it again, with the same data at the same address.
	Start(context.Context) error
}

// OpenAt opens the store on a server that is reached at an address, host:port.
type OpenAt func(ctx context.Context, address string) (observation.Store, error)

// RunServer holds a store on a server to its contract while that is killed and
// while its connections are cut: a batch for which Append returned nil is
// stored, one for which it returned an error is not, and none is stored twice.
func RunServer(t *testing.T, server Server, open OpenAt) {
	t.Run("ServerKilled", func(t *testing.T) { testServerKilled(t, server, open) })
	t.Run("ConnectionCut", func(t *testing.T) { testConnectionCut(t, server, open) })
	t.Run("ServerAway", func(t *testing.T) { testServerAway(t, server, open) })
}

// testServerKilled kills the server at random moments.
func testServerKilled(t *testing.T, server Server, open OpenAt) {
	store, err := open(t.Context(), server.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	const kills = 6
	writeThrough(t, store, "killed", func(written func() int64) {
		for range kills {
			for goal := written() + 1 + rand.Int64N(200); written() < goal; {
				time.Sleep(time.Millisecond)
			}
			server.Kill()
			if err := server.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// testConnectionCut drops requests or responses, especially at a COMMIT.
func testConnectionCut(t *testing.T, server Server, open OpenAt) {
	proxy := startProxy(t, server.Address())
	store, err := open(t.Context(), proxy.address())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	proxy.disturb(true)
	writeThrough(t, store, "cut", func(written func() int64) {
		for proxy.unanswered.Load() < 15 || proxy.unsent.Load() < 8 {
			if t.Failed() || t.Context().Err() != nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		proxy.disturb(false)
	})
	t.Logf("connections cut: %d at a COMMIT that nobody sent on, %d at one whose answer was lost", proxy.unsent.Load(), proxy.unanswered.Load())
}

// testServerAway wants errors that say so while there is no server, and an
// append to work when it is back.
func testServerAway(t *testing.T, server Server, open OpenAt) {
	store, err := open(t.Context(), server.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	trial := observation.Trial{Namespace: "default", Name: "away"}
	server.Kill()
	var batch observation.Batch
	var want []observation.Point
	for n := int64(0); err == nil; n++ { // what serves a connection may outlive the server for a moment
		batch = observation.Batch{Source: "main", From: n, To: n + 1, Points: []observation.Point{loss(float64(n), "1")}}
		want = append(want, batch.Points...)
		err = store.Append(t.Context(), trial, batch)
	}
	if _, err := store.Points(t.Context(), trial, observation.Query{}); err == nil {
		t.Error("Points without a server returned nil")
	}
	if _, err := store.Offset(t.Context(), trial, "main"); err == nil {
		t.Error("Offset without a server returned nil")
	}
	if _, err := open(t.Context(), server.Address()); !errors.Is(err, observation.ErrUnavailable) {
		t.Errorf("opening a store without a server: got %v, want ErrUnavailable", err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, store, trial, batch)
	wantPoints(t, store, trial, observation.Query{}, want...)
}

// writeThrough appends from several goroutines, each to its own source, while
// disturb runs, and then checks what is stored. written returns how many
// batches were.
func writeThrough(t *testing.T, store observation.Store, name string, disturb func(written func() int64)) {
	t.Helper()
	const writers = 4
	var (
		mu      sync.Mutex
		batches [writers]int64
		errs    int
		group   sync.WaitGroup
	)
	ctx, stop := context.WithCancel(t.Context())
	trialOf := func(w int) observation.Trial {
		return observation.Trial{Namespace: name, Name: strconv.Itoa(w)}
	}
	for w := range writers {
		group.Go(func() {
			for n := int64(0); ctx.Err() == nil; {
				batch := observation.Batch{Source: "main", From: n, To: n + 1, Points: pointsOf(n)}
				err := store.Append(context.WithoutCancel(ctx), trialOf(w), batch)
				var offset *observation.OffsetError
				switch {
				case err == nil:
					n++
				case errors.As(err, &offset):
					t.Errorf("a batch that was said not to be stored was: %v", err)
					return
				default:
					time.Sleep(time.Millisecond)
				}
				mu.Lock()
				batches[w] = n
				if err != nil {
					errs++
				}
				mu.Unlock()
			}
		})
	}
	disturb(func() (sum int64) {
		mu.Lock()
		defer mu.Unlock()
		for _, n := range batches {
			sum += n
		}
		return sum
	})
	stop()
	group.Wait()
	for w, n := range batches {
		var want []observation.Point
		for i := range n {
			want = append(want, pointsOf(i)...)
		}
		wantPoints(t, store, trialOf(w), observation.Query{}, want...)
		wantOffset(t, store, trialOf(w), "main", n)
	}
	t.Log(fmt.Sprint(batches), "batches stored;", errs, "appends failed and were tried again")
}
