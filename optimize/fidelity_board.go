// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"diwan.dev/diwan/optimize/internal/pareto"
)

// fidelityRun is a trial of a configuration with some of the resource.
type fidelityRun struct {
	Trial
	bracket, rung int // -1 where the trial is on none, as a user's own
	parent        int // index of the trial of the rung below, -1 for none
	promoted      bool
}

// fidelityBoard is a history as seen by bracket and rung.
type fidelityBoard struct {
	history  *History
	runs     []fidelityRun // by index
	brackets [][][]int     // by bracket and rung: indices of trials
}

// read finds the place of each trial from its labels. One whose labels do not
// fit, as with other settings, has none.
func (f *fidelity) read(h *History) *fidelityBoard {
	b := &fidelityBoard{history: h, runs: make([]fidelityRun, h.Len())}
	for i := range b.runs {
		run := &b.runs[i]
		*run = fidelityRun{Trial: h.trials[i], bracket: -1, rung: -1, parent: -1}
		if run.State != Lost {
			f.place(b, run)
		}
	}
	return b
}

func (f *fidelity) place(b *fidelityBoard, run *fidelityRun) {
	bracket, rung := run.label(LabelBracket), run.label(LabelRung)
	// A bracket begins when those before it have trials.
	if bracket < 0 || bracket > run.Index || rung < 0 || rung >= len(f.ladder) || run.Point.at[f.axis] != f.ladder[rung] {
		return
	}
	if _, child := run.Point.labels[LabelParent]; child {
		parent := run.label(LabelParent)
		if parent < 0 || parent >= run.Index {
			return
		}
		from := &b.runs[parent]
		if from.bracket != bracket || from.rung != rung-1 || from.promoted {
			return
		}
		from.promoted = true
		run.parent = parent
	}
	run.bracket, run.rung = bracket, rung
	for len(b.brackets) <= bracket {
		b.brackets = append(b.brackets, make([][]int, len(f.ladder)))
	}
	b.brackets[bracket][rung] = append(b.brackets[bracket][rung], run.Index)
}

// label returns a label that is a number, -1 where it is not.
func (r *fidelityRun) label(name string) int {
	n, err := strconv.Atoi(r.Point.labels[name])
	if err != nil {
		return -1
	}
	return n
}

// at returns the trials on a rung of a bracket.
func (b *fidelityBoard) at(bracket, rung int) []int {
	if bracket >= len(b.brackets) {
		return nil
	}
	return b.brackets[bracket][rung]
}

// finished returns the trials on a rung that have ended, the best first: those
// that violate no constraint by value, those that do by violation, then those
// that were stopped early and those that failed. Of equals the earlier is
// first. Several objectives are compared by fronts, and by crowding within one.
func (b *fidelityBoard) finished(bracket, rung int) []int {
	var ended []int
	for _, i := range b.at(bracket, rung) {
		if b.runs[i].State != Pending {
			ended = append(ended, i)
		}
	}
	scores := b.scores(ended)
	slices.SortFunc(ended, func(i, j int) int {
		return slices.Compare(scores[i], scores[j])
	})
	return ended
}

// scores returns for some trials numbers to sort them by, lexicographically.
func (b *fidelityBoard) scores(indices []int) map[int][]float64 {
	scores := make(map[int][]float64, len(indices))
	var feasible []int
	for _, i := range indices {
		r := b.runs[i].Result
		switch {
		case r.Complete() && r.Feasible():
			feasible = append(feasible, i)
		case r.Complete():
			scores[i] = []float64{1, r.Violation(), 0, float64(i)}
		case r.State == Stopped:
			scores[i] = []float64{2, 0, 0, float64(i)}
		default:
			scores[i] = []float64{3, 0, 0, float64(i)}
		}
	}
	if len(b.history.directions) == 1 {
		for _, i := range feasible {
			scores[i] = []float64{0, b.history.Direction().loss(b.runs[i].Value()), 0, float64(i)}
		}
		return scores
	}
	losses := make([][]float64, len(feasible))
	for k, i := range feasible {
		losses[k] = b.history.losses(b.runs[i].Trial)
	}
	fronts := pareto.Fronts(losses)
	crowding := frontCrowding(losses, fronts)
	for k, i := range feasible {
		scores[i] = []float64{0, float64(fronts[k]), -crowding[k], float64(i)}
	}
	return scores
}

// frontCrowding returns the crowding distance of each row within its front.
func frontCrowding(losses [][]float64, fronts []int) []float64 {
	crowding := make([]float64, len(losses))
	if len(losses) == 0 {
		return crowding
	}
	for front := range slices.Max(fronts) + 1 {
		var members []int
		var rows [][]float64
		for i, f := range fronts {
			if f == front {
				members, rows = append(members, i), append(rows, losses[i])
			}
		}
		for k, distance := range pareto.Crowding(rows) {
			crowding[members[k]] = distance
		}
	}
	return crowding
}

// candidates returns those of the finished trials on a rung, the best first,
// that were promoted or can be: they have values, and the same configuration
// may be tried on the next rung and was not, as it may have been by a user.
func (f *fidelity) candidates(b *fidelityBoard, finished []int) []int {
	return slices.DeleteFunc(slices.Clone(finished), func(i int) bool {
		run := &b.runs[i]
		if run.promoted {
			return false
		}
		next := f.promotion(b, i)
		return !run.Complete() || b.history.Contains(next) || !b.history.space.Feasible(next)
	})
}

// promotion returns the point with which a trial's configuration comes to the
// next rung.
func (f *fidelity) promotion(b *fidelityBoard, i int) Point {
	run := &b.runs[i]
	p := f.lift(b.history.space, f.drop(run.Point), run.rung+1)
	return p.WithLabels(map[string]string{
		LabelBracket: strconv.Itoa(run.bracket),
		LabelRung:    strconv.Itoa(run.rung + 1),
		LabelParent:  strconv.Itoa(i),
	})
}

// begin returns a new configuration on a rung of a bracket: that of the inner
// sampler, or where it has none that is new, a random one.
func (f *fidelity) begin(ctx context.Context, b *fidelityBoard, bracket, rung int) (Point, error) {
	var proposals []Point
	configuration, err := f.inner.Sample(ctx, f.view(b))
	switch {
	case err == nil:
		proposals = append(proposals, f.lift(b.history.space, configuration, rung))
	case !errors.Is(err, ErrExhausted):
		return Point{}, err
	}
	numbers := newStream(f.seed, uint64(b.history.Len()))
	u := make([]float64, f.configurations.Len())
	p, err := novel(b.history, draws, func() Point {
		if len(proposals) > 0 {
			p := proposals[0]
			proposals = nil
			return p
		}
		for i := range u {
			u[i] = numbers.float()
		}
		return f.lift(b.history.space, f.configurations.Quantile(u), rung)
	})
	if err != nil || p.at[f.axis] != f.ladder[rung] {
		return p, err // where nothing else is left, a point that is on no rung
	}
	return p.WithLabels(map[string]string{LabelBracket: strconv.Itoa(bracket), LabelRung: strconv.Itoa(rung)}), nil
}
