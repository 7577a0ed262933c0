// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	"diwan.dev/diwan/optimize/internal/random"
	"diwan.dev/diwan/optimize/internal/settings"
)

// Labels on the suggestions of [NewPBT].
const (
	// PBTGenerationLabel is how many trials the checkpoint of a suggestion has
	// behind it: 0 for one that begins from nothing.
	PBTGenerationLabel = "pbt.suggestion.katib.kubeflow.org/generation"
	// PBTParentLabel is the index of the trial from whose checkpoint the
	// suggestion continues. Generation 0 does not have it.
	PBTParentLabel = "pbt.suggestion.katib.kubeflow.org/parent"
	// PBTMemberLabel is the index of the trial of generation 0 with which the
	// member of the population began that the suggestion continues.
	PBTMemberLabel = "pbt.diwan.dev/member"
)

// PBTConfig configures [NewPBT].
type PBTConfig struct {
	// Population is how many members there are, from 2; more when there are
	// more workers.
	Population int
	// Truncation is the part of the population, from 0 to 1, that is replaced,
	// and the part that replaces it.
	Truncation float64
	// Resample is the probability, from 0 to 1, that a value is resampled;
	// otherwise it stays. If negative, every value is perturbed instead.
	Resample float64
}

// DefaultPBTConfig returns the configuration of "pbt", with the population of
// Katib's example and the truncation of the paper.
func DefaultPBTConfig() PBTConfig { return PBTConfig{Population: 40, Truncation: 0.2, Resample: -1} }

// NewPBT returns the sampler by population based training (M. Jaderberg et
// al., "Population based training of neural networks", arXiv:1711.09846): a
// trial trains for a while, from the checkpoint of an earlier one that its
// label names, with values of the parameters that differ from those of that
// one. So the search finds a schedule of values, and not one value.
//
// The population has a number of members, each a chain of trials. When a
// member's trial ends and its value is among the worst of the population, or it
// has failed, the member continues from the checkpoint and the values of one of
// the best; otherwise from its own. Either way, each number is multiplied by
// 0.8 or 1.2, by a step at least, and a value of a list becomes the next or the
// one before, as in Katib.
//
// It never waits: the member with the fewest generations continues first, and
// when all are busy a new one starts. A point may be suggested again, since it
// then has another checkpoint, so the search does not end in a finite space.
// The first members start from the best known results.
func NewPBT(space *Space, seed uint64, c PBTConfig) (Sampler, error) {
	if err := space.check(); err != nil {
		return nil, err
	}
	switch {
	case c.Population < 2:
		return nil, fmt.Errorf("population is %d: want at least 2", c.Population)
	case !(c.Truncation >= 0 && c.Truncation <= 1):
		return nil, fmt.Errorf("truncation is %v: want from 0 to 1", c.Truncation)
	case !(c.Resample <= 1):
		return nil, fmt.Errorf("resample is %v: want at most 1", c.Resample)
	}
	return &pbt{seed: seed, config: c}, nil
}

type pbt struct {
	seed   uint64
	config PBTConfig

	mu      sync.Mutex
	history *History
	seen    int            // suggestions that are in members
	members []member       // in the order in which they began
	places  map[string]int // in members, by label
}

// member is a chain of trials, by index.
type member struct {
	label  string
	trials []int
}

func (p *pbt) Sample(ctx context.Context, h *History) (Point, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.follow(h)
	numbers := random.New(p.seed, uint64(h.Len()))
	idle := p.idle(h)
	if len(p.members) < p.config.Population || idle < 0 {
		return p.begin(h, numbers), ctx.Err()
	}
	parent, ok := p.parent(h, idle, numbers)
	if !ok {
		return p.begin(h, numbers), ctx.Err()
	}
	child := p.vary(parent.Point, numbers)
	return child.WithLabels(map[string]string{
		PBTGenerationLabel: strconv.Itoa(generation(parent) + 1),
		PBTParentLabel:     strconv.Itoa(parent.Index),
		PBTMemberLabel:     p.members[idle].label,
	}), ctx.Err()
}

// follow sorts new suggestions into members. One without a label begins a
// member.
func (p *pbt) follow(h *History) {
	if p.history != h {
		p.history, p.seen, p.members, p.places = h, 0, nil, map[string]int{}
	}
	for ; p.seen < h.Len(); p.seen++ {
		t := h.trials[p.seen]
		if t.State == Lost {
			continue
		}
		label, ok := t.Point.labels[PBTMemberLabel]
		if !ok {
			label = strconv.Itoa(t.Index)
		}
		place, ok := p.places[label]
		if !ok {
			place = len(p.members)
			p.places[label] = place
			p.members = append(p.members, member{label: label})
		}
		p.members[place].trials = append(p.members[place].trials, t.Index)
	}
}

// idle returns the member without a pending trial that has the fewest
// generations behind it, -1 for none.
func (p *pbt) idle(h *History) int {
	idle, fewest := -1, math.MaxInt
	for i, m := range p.members {
		last := h.trials[m.trials[len(m.trials)-1]]
		if g := generation(last); last.State != Pending && g < fewest {
			idle, fewest = i, g
		}
	}
	return idle
}

// generation returns the generation of a trial, 0 if its labels do not have
// it.
func generation(t Trial) int {
	g, err := strconv.Atoi(t.Point.labels[PBTGenerationLabel])
	if err != nil {
		return 0
	}
	return g
}

// parent returns the trial from which a member continues: its last, or one of
// the best of the population. ok is false if no trial has a value.
func (p *pbt) parent(h *History, place int, numbers *random.Stream) (t Trial, ok bool) {
	ranking := p.ranking(h)
	if len(ranking) == 0 {
		return Trial{}, false
	}
	m := p.members[place]
	own := h.trials[m.trials[len(m.trials)-1]]
	cut := int(p.config.Truncation * float64(len(ranking)))
	rank := slices.IndexFunc(ranking, func(t Trial) bool { return t.Index == own.Index })
	if failed := rank < 0; !failed && (rank == 0 || rank < len(ranking)-cut) {
		return own, true
	}
	return ranking[numbers.Uint64()%uint64(max(1, cut))], true
}

// ranking returns the last trial of each member that has a value, from the best
// to the worst.
func (p *pbt) ranking(h *History) (ranking []Trial) {
	for _, m := range p.members {
		for _, i := range slices.Backward(m.trials) {
			if t := h.trials[i]; len(t.Values) > 0 {
				ranking = append(ranking, t)
				break
			}
		}
	}
	slices.SortStableFunc(ranking, h.compare)
	return ranking
}

// begin returns where a new member begins: at the best known results, and then
// anywhere.
func (p *pbt) begin(h *History, numbers *random.Stream) Point {
	labels := map[string]string{PBTGenerationLabel: "0"}
	if known := withValues(h.known); len(p.members) < len(known) && len(p.members) < p.config.Population/2 {
		slices.SortStableFunc(known, h.compare)
		return known[len(p.members)].Point.WithLabels(labels)
	}
	point, err := novel(h, draws, func() Point { return randomPoint(h.space, numbers) })
	if err != nil { // all points of a finite space were suggested
		point, _ = h.space.draw(numbers, searched, h.space.Feasible)
	}
	return point.WithLabels(labels)
}

// vary returns a point that differs from its parent a little.
func (p *pbt) vary(parent Point, numbers *random.Stream) Point {
	s := parent.space
	for range draws {
		child := s.point()
		for _, i := range s.order {
			a, at := &s.axes[i], parent.at[i]
			switch resampled := numbers.Float() < p.config.Resample; {
			case !s.active(i, child):
			case resampled || math.IsNaN(at):
				child.at[i] = a.quantile(numbers.Float())
			case p.config.Resample < 0:
				child.at[i] = a.perturb(at, numbers.Uint64()>>63 == 1)
			default:
				child.at[i] = at
			}
		}
		if s.Feasible(child) {
			return child
		}
	}
	return parent
}

// perturb returns a coordinate near another: a number multiplied by 1.2, if up,
// or 0.8, but changed by a step at least; zero, which factors do not change, by
// a twentieth of the range; and of a list the next value or the one before.
// Past its end is the other end of a list of categories, and back again of any
// other.
func (a *axis) perturb(at float64, up bool) float64 {
	switch {
	case a.count == 1:
		return at
	case a.Kind == KindCategorical:
		n := int(a.count)
		if up {
			return float64((int(at) + 1) % n)
		}
		return float64((int(at) + n - 1) % n)
	case a.Kind.listed():
		return a.beside(at, up)
	}
	v := at * 0.8
	if up {
		v = at * 1.2
	}
	if at == 0 {
		v = math.Copysign((a.top/2-a.Min/2)/10, v)
		if !up {
			v = -v
		}
	}
	greater := v > at
	v = math.Min(math.Max(v, a.Min), a.top)
	if a.Step == 0 {
		return v
	}
	if v = a.coordinate(min(uint64(math.Round((v-a.Min)/a.Step)), a.count-1)); v == at {
		return a.beside(at, greater)
	}
	return v
}

func pbtAlgorithm() maker {
	const directory, population, truncation, resample = "suggestion_trial_dir", "n_population", "truncation_threshold", "resample_probability"
	return maker{settings: []string{directory, population, truncation, resample, randomState}, build: func(s *settings.Reader, p Problem) (Sampler, error) {
		s.Require(directory, "the directory in which trials find their checkpoints")
		s.Require(population, "an integer from 5")
		s.Require(truncation, "a number from 0 to 1")
		c := DefaultPBTConfig()
		c.Population = s.Int(population, c.Population, settings.UpTo(5, mostPopulation))
		c.Truncation = s.Float(truncation, c.Truncation, settings.UnitInterval)
		c.Resample = s.Float(resample, c.Resample, settings.UnitInterval)
		return NewPBT(p.Space, p.Seed, c)
	}}
}
