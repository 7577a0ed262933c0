// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"diwan.dev/diwan/optimize/internal/random"
)

// candidates returns those of the finished suggestions on a rung, the best
// first, that were promoted or can be: they have values, and the same
// configuration may be tried on the next rung and was not, as it may have been
// by a user.
func (f *fidelity) candidates(b *fidelityBoard, finished []int) []int {
	return slices.DeleteFunc(finished, func(i int) bool {
		if b.runs[i].promoted {
			return false
		}
		if !b.history.trials[i].Complete() {
			return true
		}
		next := f.raised(b, i)
		return b.history.Contains(next) || !b.history.space.Feasible(next)
	})
}

// raised returns a suggestion's configuration on the next rung.
func (f *fidelity) raised(b *fidelityBoard, i int) Point {
	at := slices.Clone(b.history.trials[i].Point.at)
	at[f.axis] = f.ladder[b.runs[i].rung+1]
	return Point{space: b.history.space, at: at}
}

// promotion returns the suggestion that brings one's configuration to the next
// rung.
func (f *fidelity) promotion(b *fidelityBoard, i int) Point {
	run := &b.runs[i]
	return f.raised(b, i).WithLabels(map[string]string{
		LabelBracket: strconv.Itoa(run.bracket),
		LabelRung:    strconv.Itoa(run.rung + 1),
		LabelParent:  strconv.Itoa(i),
	})
}

// begin returns a new configuration on a rung of a bracket: that of the inner
// sampler, or where it has none that is new, a random one.
func (f *fidelity) begin(ctx context.Context, b *fidelityBoard, bracket, rung int) (Point, error) {
	numbers := random.New(f.seed, uint64(b.history.Len()))
	first, err := f.proposal(ctx, b, numbers)
	if err != nil {
		return Point{}, err
	}
	p, err := novel(b.history, draws, func() Point {
		c, _ := f.configurations.draw(numbers, 1, func(Point) bool { return true })
		if first != nil {
			c, first = *first, nil
		}
		return f.lift(b.history.space, c, rung)
	})
	if err != nil || p.at[f.axis] != f.ladder[rung] {
		return p, err // where nothing else is left, a point that is on no rung
	}
	return p.WithLabels(map[string]string{LabelBracket: strconv.Itoa(bracket), LabelRung: strconv.Itoa(rung)}), nil
}

// proposal returns a configuration to begin with, or nil where none is new.
func (f *fidelity) proposal(ctx context.Context, b *fidelityBoard, numbers *random.Stream) (*Point, error) {
	if f.inner != nil {
		if v, values := f.view(b); values >= 2*f.MinPoints {
			c, err := f.inner.Sample(ctx, v)
			switch {
			case errors.Is(err, ErrExhausted):
				return nil, nil
			case err != nil:
				return nil, err
			}
			return &c, nil
		}
	}
	if c, ok := f.configurations.draw(numbers, draws, b.unseen); ok {
		return &c, nil
	}
	return nil, nil
}

// unseen reports whether a configuration is feasible and new.
func (b *fidelityBoard) unseen(c Point) bool {
	return !b.configurations.Contains(c) && b.configurations.space.Feasible(c)
}
