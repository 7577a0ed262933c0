// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"diwan.dev/diwan/optimize/internal/cma"
	"diwan.dev/diwan/optimize/internal/random"
)

type cmaes struct {
	space   *Space
	seed    uint64
	config  CMAESConfig
	numbers []int // axes that the strategy searches
	others  []int // axes that the companion draws

	mu        sync.Mutex
	history   *History // that the rest was made from
	told      int
	known     int
	companion companion
	past      []snapshot // earlier states, newest last
	now       snapshot
}

// snapshot is the state of a search to which the results of some first
// suggestions were told: of all up to last that had one.
type snapshot struct {
	search *cma.Search
	last   int
}

func (s *cmaes) Sample(ctx context.Context, h *History) (Point, error) {
	if len(h.directions) > 1 {
		return Point{}, fmt.Errorf("cannot sample: cmaes has one objective, and the search %d", len(h.directions))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.follow(ctx, h); err != nil {
		return Point{}, err
	}
	numbers, place, extra := random.New(s.seed, uint64(h.Len())), 0, h.Len()
	p, err := novel(h, draws, func() Point {
		u := make([]float64, s.space.Len())
		if len(s.numbers) > 0 {
			var proposal []float64
			if proposal, place = s.now.search.Candidate(place); proposal == nil {
				proposal = s.now.search.Extra(extra)
				extra += 1 << 20
			}
			for k, i := range s.numbers {
				u[i] = proposal[k]
			}
		}
		return s.companion.complete(s.space, u, s.others, numbers)
	})
	if err != nil {
		return Point{}, err
	}
	return p, ctx.Err()
}

// follow brings the state up to date with a history. Results count in the
// order of their suggestions, whenever they are told, so that the state does
// not depend on the order of telling: a late one takes the state back to a
// snapshot before it, and those after it count anew.
func (s *cmaes) follow(ctx context.Context, h *History) error {
	if s.history != h || s.known != len(h.known) {
		s.begin(h)
	}
	if s.told == len(h.told) {
		return nil
	}
	first := slices.Min(h.told[s.told:])
	for _, i := range h.told[s.told:] {
		s.companion.learn(h, h.trials[i])
	}
	s.told = len(h.told)
	if len(s.numbers) == 0 {
		return nil
	}
	if first <= s.now.last {
		s.rewind(first)
	}
	for i := s.now.last + 1; i < h.Len(); i++ {
		if t := h.trials[i]; t.State != Pending && t.State != Lost {
			if err := ctx.Err(); err != nil {
				s.history = nil // which has the next call begin anew
				return err
			}
			s.tell(h, t)
		}
	}
	return nil
}

func (s *cmaes) begin(h *History) {
	s.history, s.told, s.known = h, 0, len(h.known)
	s.companion = newCompanion(s.space, s.others)
	for _, t := range h.known {
		s.companion.learn(h, t)
	}
	if len(s.numbers) > 0 {
		s.now = snapshot{cma.NewSearch(s.start(h)), -1}
		s.past = []snapshot{{s.now.search.Clone(), -1}}
	}
}

const (
	snapshotEvery = 16 // results, at least: what is to be told again after a rewind
	keptSnapshots = 16 // to go back to without beginning anew
)

// rewind takes the state back to before a suggestion.
func (s *cmaes) rewind(index int) {
	for len(s.past) > 1 && s.past[len(s.past)-1].last >= index {
		s.past = s.past[:len(s.past)-1]
	}
	s.now = s.past[len(s.past)-1]
	s.now.search = s.now.search.Clone()
}

func (s *cmaes) tell(h *History, t Trial) {
	value := math.Inf(1)
	if len(t.Values) > 0 && t.State != Infeasible {
		value = h.Direction().loss(t.Value())
	}
	s.now.search.Tell(s.unit(t.Point), value, t.Violation())
	s.now.last = t.Index
	if t.Index-s.past[len(s.past)-1].last < snapshotEvery {
		return
	}
	if len(s.past) > keptSnapshots {
		s.past = slices.Delete(s.past, 1, 2) // the first is for beginning anew
	}
	s.past = append(s.past, snapshot{s.now.search.Clone(), s.now.last})
}

// compare orders trials that have values from the best to the worst by the
// first objective, those that violate constraints after all others.
func (h *History) compare(a, b Trial) int {
	return cmp.Or(
		cmp.Compare(a.Violation(), b.Violation()),
		cmp.Compare(h.Direction().loss(a.Value()), h.Direction().loss(b.Value())),
	)
}
