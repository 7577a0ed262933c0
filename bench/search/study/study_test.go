// SPDX-License-Identifier: Apache-2.0

package study_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/bench/search/problem"
	"diwan.dev/diwan/bench/search/result"
	"diwan.dev/diwan/bench/search/study"
)

// script suggests the points of a list and notes what it is told.
type script struct {
	points  []float64
	asked   int
	told    []int
	failing string
}

func (s *script) Begin(context.Context, *problem.Problem, study.Setup) (study.Session, error) {
	return s, nil
}
func (s *script) Close() error { return nil }

func (s *script) Ask(context.Context) (problem.Point, error) {
	if s.asked == len(s.points) {
		return problem.Point{}, study.ErrExhausted
	}
	s.asked++
	return line.Point([]float64{s.points[s.asked-1]}), nil
}

func (s *script) Tell(_ context.Context, index int, _ float64) error {
	s.told = append(s.told, index)
	if s.failing != "" {
		return errors.New(s.failing)
	}
	return nil
}

// line is |x-1| + 5, with the optimum 5.
var line = &problem.Problem{
	Name: "test/line", Family: "test", Optimum: 5,
	Parameters: []problem.Parameter{{Name: "x", Kind: problem.Double, Low: -10, High: 10}},
	Evaluate: func(_ context.Context, p problem.Point, _ *rand.Rand) (problem.Value, error) {
		v := math.Abs(p.At[0]-1) + 5
		return problem.Value{Observed: v, Actual: v}, nil
	},
}

func TestRun(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason         string
		script         *script
		setup          study.Setup
		limit          time.Duration
		steps          []result.Step
		told           int
		ended          string
		duplicates     int
		inOrderOfAsked bool
	}{
		"Sequential": {
			"Only improvements are steps.", &script{points: []float64{4, 6, 2, 1}}, study.Setup{Trials: 4, Parallel: 1}, time.Minute,
			[]result.Step{{Trial: 1, Value: 3}, {Trial: 3, Value: 1}, {Trial: 4, Value: 0}}, 4, "", 0, true,
		},
		"Exhausted": {
			"A finite space ends.", &script{points: []float64{4, 6}}, study.Setup{Trials: 4, Parallel: 1}, time.Minute,
			[]result.Step{{Trial: 1, Value: 3}}, 2, "space is exhausted", 0, true,
		},
		"Limit": {
			"What takes too long ends.", &script{points: []float64{4, 6}}, study.Setup{Trials: 2, Parallel: 1}, -1,
			[]result.Step{{Trial: 1, Value: 3}}, 1, "spent its limit", 0, true,
		},
		"Failure": {
			"So does what fails.", &script{points: []float64{4, 6}, failing: "no\nmemory"}, study.Setup{Trials: 2, Parallel: 1}, time.Minute,
			nil, 0, "no memory", 0, true,
		},
		"Parallel": {
			"Results come in any order, and a pending point again is counted.", &script{points: []float64{4, 4, 4, 4, 4, 4, 4, 4}}, study.Setup{Seed: 1, Trials: 8, Parallel: 3}, time.Minute,
			[]result.Step{{Trial: 1, Value: 3}}, 8, "", 7, false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run, err := study.Run(t.Context(), tc.script, "test/script", line, tc.setup, tc.limit)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.steps, run.Steps); diff != "" {
				t.Errorf("%s steps -want, +got:\n%s", tc.reason, diff)
			}
			if run.Told != tc.told || !strings.Contains(run.Ended, tc.ended) || (run.Ended == "") != (tc.ended == "") || run.Duplicates != tc.duplicates {
				t.Errorf("%s got %+v", tc.reason, run)
			}
			inOrder := true
			for i, index := range tc.script.told {
				inOrder = inOrder && i == index
			}
			if inOrder != tc.inOrderOfAsked {
				t.Errorf("%s told in the order %v", tc.reason, tc.script.told)
			}
		})
	}
}

// TestOurs runs our random search on every kind of space, twice.
func TestOurs(t *testing.T) {
	t.Parallel()
	for _, p := range append(problem.Mixed(1), problem.BBOB(3, 2, 1)) {
		setup := study.Setup{Seed: 3, Trials: 20, Parallel: 10}
		one, err := study.Run(t.Context(), study.Ours{Algorithm: "random"}, "ours/random", p, setup, time.Minute)
		if err != nil || one.Told != 20 {
			t.Fatalf("%s: %+v, %v", p.Name, one, err)
		}
		other, err := study.Run(t.Context(), study.Ours{Algorithm: "random"}, "ours/random", p, setup, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		one.Seconds, other.Seconds = 0, 0
		if diff := cmp.Diff(one, other); diff != "" {
			t.Errorf("%s: two runs with the same seed differ:\n%s", p.Name, diff)
		}
	}
}

// TestPeer speaks with the peer that needs nothing but Python.
func TestPeer(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	o := &study.Peer{Python: python, Arguments: []string{"../peers/random_peer.py"}}
	defer func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}()
	problems := append(problem.Mixed(1), problem.BBOB(3, 2, 1))
	for _, p := range problems {
		run, err := study.Run(t.Context(), o, "test/random", p, study.Setup{Seed: 3, Trials: 12, Parallel: 4}, time.Minute)
		if err != nil || run.Told != 12 || run.Ended != "" {
			t.Errorf("%s: %+v, %v", p.Name, run, err)
		}
	}
	session, err := o.Begin(t.Context(), problems[0], study.Setup{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.(*study.PeerSession).Load(t.Context(), 10); err != nil {
		t.Error(err)
	}
	// A failure of the peer is told, and leaves it usable.
	wrong := *problems[0]
	wrong.Parameters = []problem.Parameter{{Name: "x", Kind: "complex"}}
	if _, err := o.Begin(t.Context(), &wrong, study.Setup{}); err == nil || !strings.Contains(err.Error(), "no kind complex") {
		t.Errorf("begin with a parameter of an unknown kind: %v", err)
	}
	if _, err := o.Begin(t.Context(), problems[0], study.Setup{}); err != nil {
		t.Errorf("begin after a failure: %v", err)
	}
}

// TestPeerEnds checks that a program that cannot run says why, and that one
// that does not answer is ended.
func TestPeerEnds(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	broken := &study.Peer{Python: python, Arguments: []string{"-c", "import nothing_of_this_name"}}
	defer broken.Close()
	run, err := study.Run(t.Context(), broken, "test/broken", line, study.Setup{Trials: 1, Parallel: 1}, time.Minute)
	if err != nil || !strings.Contains(run.Ended, "nothing_of_this_name") {
		t.Errorf("run of a broken peer: %+v, %v", run, err)
	}
	mute := &study.Peer{Python: python, Arguments: []string{"-c", "import sys; sys.stdin.read()"}}
	defer mute.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := mute.Begin(ctx, line, study.Setup{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("begin with a mute peer: %v, want a deadline", err)
	}
}
