// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	"diwan.dev/diwan/optimize/internal/random"
	"diwan.dev/diwan/optimize/internal/surrogate"
	"diwan.dev/diwan/optimize/internal/transfer"
)

// TransferConfig configures how a search learns from earlier ones.
type TransferConfig struct {
	// Initial is how many initial suggestions may be good points of earlier
	// searches, from 0. The first always is one, others to the extent that
	// earlier searches are trusted.
	Initial int
	// Half is the number of results after which at most half of the
	// suggestions come from earlier searches, greater than 0. They become
	// rarer with the square of it: by then the sampler below knows as much,
	// and only it finds the last digits.
	Half float64
	// Optimism is how far earlier searches are trusted before any result, in
	// standard deviations of chance; it fades with a few results. At 0.4, a
	// third of the suggestions are theirs.
	Optimism float64
}

// DefaultTransferConfig returns a configuration with which searches of related
// functions gain much at the start, and searches of unrelated ones lose a
// trial or two.
func DefaultTransferConfig() TransferConfig {
	return TransferConfig{Initial: 3, Half: 8, Optimism: 0.4}
}

// NewTransfer returns a sampler that suggests the points of base, but at first
// and occasionally those that earlier searches found good, to the extent that
// they agree with the search's own results.
//
// The earlier searches may differ in scale and direction of the objective, and
// in parameters: those of the same name count, and values are those of the
// space where it has them. The first suggestions are points that the best of
// the earlier searches have in common, chosen so that each of them has one that
// is good for it (Wistuba, Schilling and Schmidt-Thieme, "Sequential model-free
// hyperparameter tuning", 2015). Later ones minimize a model of the search that
// is stacked on theirs: each earlier search is a Gaussian process of the ranks
// of its values, weighted by how well it orders the results of the search
// (Feurer, Letham and Bakshy, "Scalable meta-learning for Bayesian
// optimization", 2018), and a last one learns what they miss (Golovin et al.,
// "Google Vizier", 2017). How often depends on whether this order is better
// than chance: misleading earlier searches are soon ignored.
//
// Of several objectives the first counts.
func NewTransfer(base Sampler, space *Space, sources []*History, seed uint64, c TransferConfig) (Sampler, error) {
	if err := space.check(); err != nil {
		return nil, err
	}
	switch {
	case base == nil:
		return nil, errors.New("cannot transfer: base sampler is nil")
	case c.Initial < 0:
		return nil, fmt.Errorf("cannot transfer: Initial is %d: want an integer from 0", c.Initial)
	case !(c.Half > 0):
		return nil, fmt.Errorf("cannot transfer: Half is %v: want a number greater than 0", c.Half)
	case math.IsNaN(c.Optimism):
		return nil, errors.New("cannot transfer: Optimism is not a number")
	}
	t := &transferSampler{base: base, space: space, seed: seed, config: c, features: newFeatures(space)}
	for _, h := range sources {
		if s := newSource(space, h); s != nil {
			t.sources = append(t.sources, s)
		}
	}
	return t, nil
}

type transferSampler struct {
	base     Sampler
	space    *Space
	seed     uint64
	config   TransferConfig
	features surrogate.Features
	sources  []*transfer.Source

	once   sync.Once
	models *transfer.Models
}

// Sample implements [Sampler].
func (t *transferSampler) Sample(ctx context.Context, h *History) (Point, error) {
	if len(t.sources) == 0 {
		return t.base.Sample(ctx, h)
	}
	t.once.Do(func() { t.models = transfer.Together(t.features, t.sources) })
	target := newTarget(t.models, h)
	numbers := random.New(t.seed, uint64(h.Len()))
	if first := h.Len() == 0 && t.config.Initial > 0; !first && numbers.Float() >= target.Share(t.config.Half, t.config.Optimism) {
		return t.base.Sample(ctx, h)
	}
	if h.Len() < t.config.Initial {
		if p, ok := t.cover(h, target); ok {
			return p, ctx.Err()
		}
	}
	p, err := t.propose(h, target, numbers)
	if err != nil {
		return Point{}, err
	}
	return p, ctx.Err()
}

// cover returns a good point of an earlier search, that which most lowers the
// mean over searches of the best prediction so far; false if none does by much.
func (t *transferSampler) cover(h *History, g *transfer.Target) (Point, bool) {
	gain := g.Gain()
	var chosen Point
	most := 0.1 // of a standard deviation
	for _, s := range t.sources {
		for _, u := range s.Best {
			p := t.space.Quantile(u)
			if h.Contains(p) || !t.space.Feasible(p) {
				continue
			}
			if v := gain(t.space.Unit(p)); v > most {
				chosen, most = p, v
			}
		}
	}
	return chosen, chosen.space != nil
}

const (
	transferProposals  = 400 // random points that are rated
	transferNeighbours = 30  // points near each good one that are rated
	transferSteps      = 60  // steps from the best of them
)

// propose returns the point that promises most.
func (t *transferSampler) propose(h *History, g *transfer.Target, numbers *random.Stream) (Point, error) {
	s := g.Stack()
	rate := func(u []float64) float64 {
		p := t.space.Quantile(u)
		if h.Contains(p) || !t.space.Feasible(p) {
			return math.Inf(1) // it cannot be suggested
		}
		return s.Rate(t.space.Unit(p))
	}
	w := surrogate.Walker{Features: t.features, Numbers: numbers, Rate: rate}
	var best []float64
	rating := math.Inf(1)
	try := func(u []float64) {
		if v := rate(u); v < rating {
			best, rating = slices.Clone(u), v
		}
	}
	u := make([]float64, t.space.Len())
	random := func() []float64 {
		for i := range u {
			u[i] = numbers.Float()
		}
		return u
	}
	for range transferProposals {
		try(random())
	}
	for _, start := range t.starts(h, g) {
		try(start)
		for range transferNeighbours {
			try(w.Near(start, 0.2))
		}
	}
	if best != nil {
		best, _ = w.Descend(best, rating, transferSteps)
	}
	return novel(h, draws, func() Point {
		if best != nil {
			p := t.space.Quantile(best)
			best = nil
			return p
		}
		return t.space.Quantile(random())
	})
}

// starts returns the best point of the search, and of the earlier ones that
// weigh most.
func (t *transferSampler) starts(h *History, g *transfer.Target) [][]float64 {
	var starts [][]float64
	if best, ok := h.Best(); ok {
		starts = append(starts, surrogate.Whole(t.space.Unit(best.Point)))
	}
	weights := g.Weights()[:len(t.sources)]
	order := surrogate.Ascending(weights)
	slices.Reverse(order)
	for _, s := range order[:min(len(order), 8)] {
		starts = append(starts, t.sources[s].Best[0])
	}
	return starts
}

// newSource returns an earlier search as seen from a space, nil if it has fewer
// than two results for points of that.
func newSource(space *Space, h *History) *transfer.Source {
	var points [][]float64
	var losses []float64
	known := make([]bool, space.Len())
	for _, t := range slices.Concat(h.known, h.trials) {
		if !t.Complete() || !t.Feasible() {
			continue
		}
		if u, ok := space.translate(t.Point, known); ok {
			points, losses = append(points, u), append(losses, h.Direction().loss(t.Value()))
		}
	}
	if len(losses) < 2 {
		return nil
	}
	return transfer.NewSource(points, losses, known)
}

// translate returns where a point of another space is in the unit cube of this
// one, and notes which parameters it has. A parameter that it does not have is
// not a number. ok is false if a value is out of range.
func (s *Space) translate(p Point, known []bool) (unit []float64, ok bool) {
	unit = make([]float64, s.Len())
	for i := range unit {
		a := &s.axes[i]
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
	switch {
	case err != nil || a.Kind == KindCategorical || a.Kind == KindOrdered:
		return 0, false
	case a.Kind != KindDiscrete && !(v >= a.Min && v <= a.Max):
		return 0, false
	}
	return a.unit(a.nearest(v)), true
}

// remembered is how many trials are compared and modelled, the latest, and
// known results where there are fewer.
const remembered = 100

// newTarget returns what a search has found so far, as earlier ones see it.
func newTarget(models *transfer.Models, h *History) *transfer.Target {
	var results []transfer.Result
	var pending [][]float64
	recent := h.trials[max(len(h.trials)-remembered, 0):]
	known := h.known[max(len(h.known)+len(recent)-remembered, 0):]
	for _, t := range slices.Concat(known, recent) {
		switch t.State {
		case Pending:
			pending = append(pending, h.space.Unit(t.Point))
			continue
		case Lost, Stopped:
			continue
		}
		r := transfer.Result{Point: h.space.Unit(t.Point), Loss: math.Inf(1)}
		if t.Complete() && t.Feasible() {
			r.Loss = h.Direction().loss(t.Value())
		}
		results = append(results, r)
	}
	return models.NewTarget(results, pending)
}

// Similarity is how an earlier search compares with another.
type Similarity struct {
	// Source is the index of the earlier search.
	Source int
	// Agreement is how well it orders the results of the other: Kendall's
	// rank correlation, from -1 to 1; 0 is chance, also used if there are
	// fewer than two results.
	Agreement float64
	// Weight is its part in what all of them say, from 0 to 1.
	Weight float64
}

// RankSources ranks the earlier searches by similarity to a search, the most
// similar first. Those with fewer than two results for points of the space are
// omitted.
func RankSources(h *History, sources []*History) []Similarity {
	if h.space.check() != nil {
		return nil
	}
	var seen []*transfer.Source
	var ranked []Similarity
	for i, each := range sources {
		if s := newSource(h.space, each); s != nil {
			seen = append(seen, s)
			ranked = append(ranked, Similarity{Source: i})
		}
	}
	target := newTarget(transfer.Each(newFeatures(h.space), seen), h)
	for i, w := range target.Weights() {
		ranked[i].Weight, ranked[i].Agreement = w, target.Agreement(i)
	}
	slices.SortStableFunc(ranked, func(a, b Similarity) int {
		switch {
		case a.Agreement > b.Agreement:
			return -1
		case a.Agreement < b.Agreement:
			return 1
		}
		return 0
	})
	return ranked
}
