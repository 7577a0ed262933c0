// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"diwan.dev/diwan/optimize/internal/random"
)

// TransferConfig says how a search learns from earlier ones.
type TransferConfig struct {
	// Initial is among how many suggestions at the start there may be good
	// points of earlier searches, from 0. The first is always one, others as
	// far as earlier searches are believed.
	Initial int
	// Half is the number of results after which at most half of the
	// suggestions come from earlier searches, greater than 0. They become
	// rarer with the square of it: by then the sampler below knows as much,
	// and only it finds the last digits.
	Half float64
	// Optimism is how far earlier searches are believed before any result, in
	// standard deviations of chance; it fades with a handful of results. At
	// 0.4, a third of the suggestions are theirs.
	Optimism float64
}

// DefaultTransferConfig returns a configuration with which searches of related
// functions gain much at the start, and those of others lose a trial or two.
func DefaultTransferConfig() TransferConfig {
	return TransferConfig{Initial: 3, Half: 8, Optimism: 0.4}
}

// NewTransfer returns a sampler that suggests what base does, but first and now
// and then what earlier searches found good, as far as they agree with what the
// search itself finds.
//
// The earlier searches may differ in scale and direction of the objective, and
// in parameters: those of the same name count, and values are those of the
// space where it has them. The first suggestions are points that the best of
// the earlier searches have in common, chosen so that each of them has one that
// is good for it (Wistuba, Schilling and Schmidt-Thieme, "Sequential
// model-free hyperparameter tuning", 2015). Later ones minimise a model of the
// search that is stacked on theirs: each earlier search is a Gaussian process
// of the ranks of its values, weighted by how well it orders the results of the
// search (Feurer, Letham and Bakshy, "Scalable meta-learning for Bayesian
// optimization", 2018), and a last one learns what they miss (Golovin et al.,
// "Google Vizier", 2017). How often depends on whether this order is better
// than chance: earlier searches that mislead are soon not asked any more.
//
// Of several objectives the first counts.
func NewTransfer(base Sampler, space *Space, sources []*History, seed uint64, c TransferConfig) (Sampler, error) {
	switch {
	case base == nil:
		return nil, errors.New("cannot transfer: base sampler is nil")
	case c.Initial < 0:
		return nil, fmt.Errorf("cannot transfer: Initial is %d: want a whole number from 0", c.Initial)
	case !(c.Half > 0):
		return nil, fmt.Errorf("cannot transfer: Half is %v: want a number greater than 0", c.Half)
	case math.IsNaN(c.Optimism):
		return nil, errors.New("cannot transfer: Optimism is not a number")
	}
	t := &transfer{base: base, space: space, seed: seed, config: c, features: newFeatures(space), seen: map[string][]float64{}}
	for _, h := range sources {
		if s := t.features.source(h); s != nil {
			t.sources = append(t.sources, s)
		}
	}
	return t, nil
}

type transfer struct {
	base     Sampler
	space    *Space
	seed     uint64
	config   TransferConfig
	features features
	sources  []*source

	once   sync.Once
	models []*sourceModel // of each source, and of all together

	mu   sync.Mutex
	seen map[string][]float64 // what models predict at points, to save time
}

// Sample implements [Sampler].
func (t *transfer) Sample(ctx context.Context, h *History) (Point, error) {
	if len(t.sources) == 0 {
		return t.base.Sample(ctx, h)
	}
	t.once.Do(func() { t.models = t.features.models(t.sources) })
	target := t.newTarget(h)
	numbers := random.New(t.seed, uint64(h.Len()))
	if first := h.Len() == 0 && t.config.Initial > 0; !first && numbers.Float() >= t.share(target) {
		return t.base.Sample(ctx, h)
	}
	if h.Len() < t.config.Initial {
		if p, ok := t.cover(target); ok {
			return p, ctx.Err()
		}
	}
	p, err := t.propose(target, numbers)
	if err != nil {
		return Point{}, err
	}
	return p, ctx.Err()
}

// share returns how many of the suggestions are to come from earlier searches
// now, from 0 to 1.
func (t *transfer) share(g *target) float64 {
	n := float64(len(g.losses))
	fading := 1 / (1 + n/5)
	z := significance(g.agreement(), len(g.losses)) + t.config.Optimism*fading - doubt*(1-fading)
	late := n / t.config.Half
	return math.Max(2*below(z)-1, 0) / (1 + late*late)
}

// doubt is how many standard deviations earlier searches have to be better than
// chance to be asked in the long run.
const doubt = 1

// significance returns a Kendall correlation of n pairs in standard deviations
// of what chance makes of it.
func significance(correlation float64, n int) float64 {
	if n < 2 {
		return 0
	}
	k := float64(n)
	return correlation / math.Sqrt(2*(2*k+5)/(9*k*(k-1)))
}

// cover returns a good point of an earlier search, that which most lowers the
// mean over searches of the best prediction so far; false if none does by much.
func (t *transfer) cover(g *target) (Point, bool) {
	weights := g.weights(-1)
	best := make([]float64, len(t.models))
	for m := range best {
		best[m] = worstScore
		for _, at := range g.predictions {
			best[m] = math.Min(best[m], at[m])
		}
		for _, at := range g.pending {
			best[m] = math.Min(best[m], at.predictions[m])
		}
	}
	var chosen Point
	most := 0.1 // of a standard deviation
	for _, s := range t.sources {
		for _, u := range s.best {
			p := t.space.Quantile(u)
			if g.h.Contains(p) || !t.space.Feasible(p) {
				continue
			}
			gain := 0.0
			for m, v := range t.predict(p) {
				gain += weights[m] * math.Max(best[m]-v, 0)
			}
			if gain > most {
				chosen, most = p, gain
			}
		}
	}
	return chosen, chosen.space != nil
}

// worstScore is a normal score that no trial is as bad as.
const worstScore = 3

// predict returns what each model predicts at a point.
func (t *transfer) predict(p Point) []float64 {
	key := p.key()
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.seen[key]; ok {
		return known
	}
	row := t.features.row(t.space.Unit(p))
	predictions := make([]float64, len(t.models))
	for i, m := range t.models {
		predictions[i] = m.mean(row)
	}
	t.seen[key] = predictions
	return predictions
}

// Similarity is how an earlier search compares with another.
type Similarity struct {
	// Source is the index of the earlier search.
	Source int
	// Agreement is how far it orders the results of the other as they are:
	// Kendall's rank correlation, from -1 to 1; 0 is chance, and what it is
	// where there are fewer than two results.
	Agreement float64
	// Weight is its part in what all of them say, from 0 to 1.
	Weight float64
}

// RankSources returns the earlier searches by how similar they are to a search,
// the most similar first. Those that have fewer than two results for points of
// the space are left out.
func RankSources(h *History, sources []*History) []Similarity {
	t := &transfer{space: h.space, features: newFeatures(h.space), seen: map[string][]float64{}}
	var ranked []Similarity
	for i, each := range sources {
		if s := t.features.source(each); s != nil {
			t.sources = append(t.sources, s)
			t.models = append(t.models, t.features.model(s, s.scores, 1))
			ranked = append(ranked, Similarity{Source: i})
		}
	}
	g := t.newTarget(h)
	for i, w := range g.weights(-1) {
		ranked[i].Weight, ranked[i].Agreement = w, g.correlation(i, -1)
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
