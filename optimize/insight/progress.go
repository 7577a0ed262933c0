// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"fmt"
	"slices"

	"diwan.dev/diwan/optimize"
	"diwan.dev/diwan/optimize/internal/pareto"
)

// Progress is one step in the history of an objective.
type Progress struct {
	// Trial is the index of a complete trial, and Value its objective's.
	Trial int    `json:"trial"`
	Value Number `json:"value"`
	// Feasible is false where the trial violates a constraint.
	Feasible bool `json:"feasible"`
	// Best is the best value of a feasible trial so far, null before the
	// first.
	Best Number `json:"best"`
}

// Convergence returns how an objective came on, by trial.
func Convergence(h *optimize.History, objective int) ([]Progress, error) {
	if err := checkObjective(h, objective); err != nil {
		return nil, fmt.Errorf("cannot compute convergence: %w", err)
	}
	better := h.Directions()[objective].Better
	best := notANumber
	var steps []Progress
	for _, t := range complete(h) {
		v := t.Values[objective]
		if t.Feasible() && (best != best || better(v, float64(best))) {
			best = Number(v)
		}
		steps = append(steps, Progress{t.Index, Number(v), t.Feasible(), best})
	}
	return steps, nil
}

func checkObjective(h *optimize.History, objective int) error {
	if n := len(h.Directions()); objective < 0 || objective >= n {
		return fmt.Errorf("objective is %d: want 0 to %d", objective, n-1)
	}
	return nil
}

// complete returns the complete trials, by index.
func complete(h *optimize.History) []optimize.Trial {
	var trials []optimize.Trial
	for i := range h.Len() {
		if t := h.Trial(i); t.Complete() {
			trials = append(trials, t)
		}
	}
	return trials
}

// Step is one of a distribution function.
type Step struct {
	Value Number `json:"value"`
	// Part is that of the complete trials whose value is at most Value, from
	// 0 to 1.
	Part float64 `json:"part"`
}

// Distribution returns the empirical distribution function of an objective:
// one that rises earlier, or later where more is better, is of a better search.
func Distribution(h *optimize.History, objective int) ([]Step, error) {
	if err := checkObjective(h, objective); err != nil {
		return nil, fmt.Errorf("cannot compute distribution: %w", err)
	}
	var values []float64
	for _, t := range complete(h) {
		values = append(values, t.Values[objective])
	}
	slices.Sort(values)
	var steps []Step
	for i, v := range values {
		if i+1 == len(values) || values[i+1] != v {
			steps = append(steps, Step{Number(v), float64(i+1) / float64(len(values))})
		}
	}
	return steps, nil
}

// Front is what a search found of the trade-offs between objectives.
type Front struct {
	// Trials are the indices of the trials that no other dominates, and
	// Values their objectives'.
	Trials []int      `json:"trials"`
	Values [][]Number `json:"values"`
	// Reference is what the hypervolume is measured to.
	Reference []Number `json:"reference"`
	// Hypervolume is the volume that the front dominates, in the product of
	// the objectives' units.
	Hypervolume Number `json:"hypervolume"`
	// History is the hypervolume after each complete trial.
	History []Volume `json:"history"`
}

// Volume is one step in the history of the hypervolume.
type Volume struct {
	Trial       int    `json:"trial"`
	Hypervolume Number `json:"hypervolume"`
}

// ParetoFront returns the front of a search, and the hypervolume up to a
// reference, one value for each objective. For no reference it is measured to
// the worst of each objective and a tenth of its range beyond.
func ParetoFront(h *optimize.History, reference []float64) (Front, error) {
	trials := complete(h)
	directions := h.Directions()
	switch {
	case reference == nil:
		var losses [][]float64
		for _, t := range trials {
			losses = append(losses, turned(t.Values, directions))
		}
		reference = turned(pareto.Reference(losses), directions)
	case len(reference) != len(directions):
		return Front{}, fmt.Errorf("cannot compute Pareto front: reference has %d values: want one for each of %d objectives", len(reference), len(directions))
	}
	front := Front{Reference: numbers(reference)}
	for _, t := range h.Pareto() {
		front.Trials = append(front.Trials, t.Index)
		front.Values = append(front.Values, numbers(t.Values))
	}
	front.History = volumes(trials, directions, turned(reference, directions))
	if n := len(front.History); n > 0 {
		front.Hypervolume = front.History[n-1].Hypervolume
	}
	return front, nil
}

// volumes returns the hypervolume after each trial.
func volumes(trials []optimize.Trial, directions []optimize.Direction, reference []float64) []Volume {
	var front [][]float64
	var history []Volume
	volume := 0.0
	for _, t := range trials {
		losses := turned(t.Values, directions)
		covered := slices.ContainsFunc(front, func(row []float64) bool {
			return pareto.Dominates(row, losses) || slices.Equal(row, losses)
		})
		if t.Feasible() && !covered {
			front = slices.DeleteFunc(front, func(row []float64) bool { return pareto.Dominates(losses, row) })
			front = append(front, losses)
			volume = pareto.Hypervolume(front, reference)
		}
		history = append(history, Volume{t.Index, Number(volume)})
	}
	return history
}

// turned returns values with the sign at which less is better, and the other
// way round.
func turned(values []float64, directions []optimize.Direction) []float64 {
	losses := slices.Clone(values)
	for i := range losses {
		if directions[i] == optimize.Maximize {
			losses[i] = -losses[i]
		}
	}
	return losses
}
