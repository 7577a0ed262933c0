// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"diwan.dev/diwan/optimize/internal/gp"
)

// features says how a Gaussian process sees the points of a space: a number
// from 0 to 1 for each parameter with an order, and one for each category of
// the others. A parameter that a point does not have is in the middle.
type features struct {
	space  *Space
	groups []int // by feature: the parameter
	first  []int // by parameter: its first feature
}

func newFeatures(s *Space) features {
	f := features{space: s}
	for i := range s.axes {
		f.first = append(f.first, len(f.groups))
		for range f.width(i) {
			f.groups = append(f.groups, i)
		}
	}
	return f
}

func (f features) width(i int) int {
	if a := &f.space.axes[i]; a.Kind == KindCategorical {
		return len(a.List)
	}
	return 1
}

// row returns the features of a point of the unit cube.
func (f features) row(unit []float64) []float64 {
	row := make([]float64, len(f.groups))
	for i, u := range unit {
		part := row[f.first[i] : f.first[i]+f.width(i)]
		switch {
		case math.IsNaN(u):
			for k := range part {
				part[k] = 0.5
			}
		case len(part) > 1:
			part[min(int(u*float64(len(part))), len(part)-1)] = 1
		default:
			part[0] = u
		}
	}
	return row
}

// source is an earlier search as seen from another space.
type source struct {
	units  [][]float64 // in the unit cube of the space
	losses []float64
	scores []float64   // normal scores of the losses
	known  []bool      // by parameter: whether the source has it
	best   [][]float64 // the best units, with values for all parameters
}

// bestOfSource is how many points of each source may be suggested.
const bestOfSource = 3

// source returns what a search says about points of the space, nil if it is
// less than two results.
func (f features) source(h *History) *source {
	s := &source{known: make([]bool, f.space.Len())}
	for _, t := range slices.Concat(h.known, h.trials) {
		if !t.Complete() || !t.Feasible() {
			continue
		}
		if u, ok := f.translate(t.Point, s.known); ok {
			s.units, s.losses = append(s.units, u), append(s.losses, h.Direction().loss(t.Value()))
		}
	}
	if len(s.losses) < 2 {
		return nil
	}
	s.scores = normalScores(s.losses)
	for _, i := range ascending(s.losses)[:min(bestOfSource, len(s.losses))] {
		s.best = append(s.best, anywhere(s.units[i]))
	}
	return s
}

// translate returns where a point of another space is in the unit cube of this
// one, and notes which parameters it has. A parameter that it does not have is
// not a number. ok is false if a value is out of range.
func (f features) translate(p Point, known []bool) (unit []float64, ok bool) {
	unit = make([]float64, f.space.Len())
	for i := range unit {
		a := &f.space.axes[i]
		unit[i] = math.NaN()
		k, has := p.space.byName[a.Name]
		if !has {
			continue
		}
		known[i] = true
		if math.IsNaN(p.at[k]) {
			continue
		}
		if unit[i], ok = a.locate(p.space.axes[k].format(p.at[k])); !ok {
			return nil, false
		}
	}
	return unit, true
}

// locate returns where in the unit interval of the axis the nearest value to a
// text is, false if it is out of range or no value.
func (a *axis) locate(text string) (u float64, ok bool) {
	if at, err := a.parse(text); err == nil {
		return a.unit(at), true
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || a.Kind == KindCategorical || a.Kind == KindOrdered {
		return 0, false
	}
	if a.Kind == KindDiscrete {
		nearest := 0
		for k := range a.List {
			if math.Abs(a.number(k)-v) < math.Abs(a.number(nearest)-v) {
				nearest = k
			}
		}
		return a.unit(float64(nearest)), true
	}
	if !(v >= a.Min && v <= a.Max) {
		return 0, false
	}
	if a.count > 0 { // off the step
		v = a.coordinate(min(a.index(v), a.count-1))
	}
	return a.unit(v), true
}

// ascending returns the indices of some numbers in their order.
func ascending(numbers []float64) []int {
	order := make([]int, len(numbers))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(numbers[a], numbers[b]) })
	return order
}

// normalScores maps numbers to those that as many of a normal distribution are
// below, whatever their scale and outliers; equal ones share their mean place.
func normalScores(numbers []float64) []float64 {
	order, n := ascending(numbers), len(numbers)
	scores := make([]float64, n)
	for from := 0; from < n; {
		to := from + 1
		for to < n && numbers[order[to]] == numbers[order[from]] {
			to++
		}
		part := float64(from+to) / 2 / float64(n)
		for _, i := range order[from:to] {
			scores[i] = -math.Sqrt2 * math.Erfcinv(2*part)
		}
		from = to
	}
	return scores
}

// sourceModel is a Gaussian process of normal scores.
type sourceModel struct {
	process *gp.Model
	hidden  []int // features of parameters that the source does not have
	prior   float64
}

const (
	// modelled is how many results a process learns from: its cost grows with
	// the third power.
	modelled = 200
	// fitSteps is how many steps the fit of a kernel takes.
	fitSteps = 25
)

// models returns those of the sources, and where there are several two of all
// of them together: as if they were one search, and each on its own scale.
func (f features) models(sources []*source) []*sourceModel {
	var models []*sourceModel
	prior, all := 1.0, &source{known: make([]bool, f.space.Len())}
	if len(sources) > 1 {
		prior = 1 / float64(len(sources))
	}
	for _, s := range sources {
		models = append(models, f.model(s, s.scores, prior))
		all.units, all.losses, all.scores = slices.Concat(all.units, s.units), slices.Concat(all.losses, s.losses), slices.Concat(all.scores, s.scores)
		for i, known := range s.known {
			all.known[i] = all.known[i] || known
		}
	}
	if len(sources) > 1 {
		models = append(models, f.model(all, normalScores(all.losses), 1), f.model(all, all.scores, 1))
	}
	return models
}

// model returns that of a source.
func (f features) model(s *source, scores []float64, prior float64) *sourceModel {
	m := &sourceModel{prior: prior}
	for k, g := range f.groups {
		if !s.known[g] {
			m.hidden = append(m.hidden, k)
		}
	}
	var inputs [][]float64
	var outputs []float64
	for _, i := range selection(scores, modelled) {
		row := f.row(s.units[i])
		m.hide(row)
		inputs, outputs = append(inputs, row), append(outputs, scores[i])
	}
	m.process = f.fit(inputs, outputs)
	return m
}

// selection returns the indices of the best half and an even choice of the
// others, if there are more than some number.
func selection(scores []float64, most int) []int {
	order := ascending(scores)
	if len(order) <= most {
		return order
	}
	chosen := slices.Clone(order[:most/2])
	rest := order[most/2:]
	for k := range most - most/2 {
		chosen = append(chosen, rest[k*len(rest)/(most-most/2)])
	}
	return chosen
}

// fit returns the process of some observations.
func (f features) fit(inputs [][]float64, outputs []float64) *gp.Model {
	prior := gp.DefaultPrior(f.space.Len())
	kernel := prior.Mode()
	if len(inputs) > 3 {
		kernel, _ = gp.Fit(prior, kernel, fitSteps, f.groups, inputs, outputs)
	}
	return gp.New(kernel, f.groups, inputs, outputs)
}

func (m *sourceModel) hide(row []float64) {
	for _, k := range m.hidden {
		row[k] = 0.5
	}
}

func (m *sourceModel) mean(row []float64) float64 {
	if len(m.hidden) > 0 {
		row = slices.Clone(row)
		m.hide(row)
	}
	return m.process.Mean(row)
}

func (m *sourceModel) predict(row []float64) (mean, variance float64) {
	if len(m.hidden) > 0 {
		row = slices.Clone(row)
		m.hide(row)
	}
	return m.process.Predict(row)
}
