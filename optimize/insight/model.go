// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"diwan.dev/diwan/optimize"
	"diwan.dev/diwan/optimize/internal/forest"
	"diwan.dev/diwan/optimize/internal/random"
)

const (
	// trees are in a model: fANOVA's authors and Optuna use as many.
	trees = 64
	// stages share the trees: the forest of each learns what those before it
	// leave, so that peaks are not flattened.
	stages = 4
	// rowsPerTree bounds what each tree learns from, so that long searches
	// are explained in about a second; different trees see different rows.
	rowsPerTree = 2000
	// resolution is how many values of a parameter are looked at.
	resolution = 64
	// pairResolution is how many of each parameter where there are two.
	pairResolution = 32
	// draws is the number of random points for estimating the total variance,
	// to about 2 %.
	draws = 4096
	// features is the part of the parameters that compete for a split, as in
	// SMAC; with fewer, those that act only together are found less well.
	features = 5. / 6
)

// Model is a random forest model of an objective. Its methods are pure
// functions.
type Model struct {
	space       *optimize.Space
	forests     []*forest.Model // that add up to (y - shift) / unit
	shift, unit float64
	variance    float64 // of that
}

// Fit learns the objective from the complete trials of a history.
func Fit(h *optimize.History, o Options) (*Model, error) {
	s, err := gather(h, o)
	if err != nil {
		return nil, fmt.Errorf("cannot fit model: %w", err)
	}
	m := &Model{space: s.space}
	m.shift, m.unit = s.standardise()
	c := forest.DefaultConfig(forest.RandomForest)
	c.Trees, c.Rows, c.Middle, c.MinLeaf, c.Features = trees/stages, rowsPerTree, true, min(max(len(s.y)/100, 2), 5), features
	for stage := range uint64(stages) {
		f := forest.Fit(s.x, categories(s.space), s.y, c, random.New(o.Seed, stage).Uint64())
		for i, row := range s.x {
			v, _ := f.Predict(row)
			s.y[i] -= v
		}
		m.forests = append(m.forests, f)
	}
	m.variance = m.measure(random.New(o.Seed, stages))
	return m, nil
}

// predict returns the mean at a row, on the model's scale.
func (m *Model) predict(row []float64) float64 {
	sum := 0.0
	for _, f := range m.forests {
		v, _ := f.Predict(row)
		sum += v
	}
	return sum
}

// measure returns the variance of the model over the space, by a Latin
// hypercube: what parameters do by themselves is then hardly left to chance.
func (m *Model) measure(r *random.Stream) float64 {
	strata := make([][]int, m.space.Len())
	for i := range strata {
		strata[i] = r.Permutation(draws)
	}
	u, values := make([]float64, m.space.Len()), make([]float64, draws)
	for k := range values {
		for i := range u {
			u[i] = (float64(strata[i][k]) + r.Float()) / draws
		}
		values[k] = m.predict(m.space.Unit(m.space.Quantile(u)))
	}
	return variance(values)
}

// Share is the individual importance of a parameter.
type Share struct {
	Name string `json:"name"`
	// Share is the part of the variance that it explains, from 0 to 1.
	Share float64 `json:"share"`
}

// Importance returns the share of each parameter, the most important first: the
// first-order Sobol index of the model (Hutter, Hoos and Leyton-Brown, "An
// efficient approach for assessing hyperparameter importance", 2014).
func (m *Model) Importance() []Share {
	l := newLattice(m.space, resolution)
	var shares []Share
	for i, curve := range m.marginals(l) {
		shares = append(shares, Share{m.space.Parameter(i).Name, m.share(l.dims[i].chance * variance(curve))})
	}
	return sorted(shares)
}

func sorted(shares []Share) []Share {
	slices.SortStableFunc(shares, func(a, b Share) int { return cmp.Compare(b.Share, a.Share) })
	return shares
}

// share returns a variance as a part of all. What is left after rounding when
// nothing varies is none.
func (m *Model) share(v float64) float64 {
	if m.variance <= 1e-12 {
		return 0
	}
	return math.Min(v/m.variance, 1)
}

func variance(numbers []float64) float64 {
	mean, sum := 0.0, 0.0
	for _, v := range numbers {
		mean += v / float64(len(numbers))
	}
	for _, v := range numbers {
		sum += (v - mean) * (v - mean)
	}
	return sum / float64(len(numbers))
}

// marginals returns for each parameter the mean of the model at each of its
// cells, over all points that have it with that value.
func (m *Model) marginals(l *lattice) [][]float64 {
	curves := make([][]float64, len(l.dims))
	for i := range curves {
		curves[i] = make([]float64, len(l.dims[i].at)+1)
	}
	f := l.newLeaf()
	var p profile
	m.leaves(f, func(mean float64) {
		for i, curve := range curves {
			scale := mean * f.others(i) * f.rise(i, -1)
			p = f.profile(p[:0], i, nil, -1)
			for _, w := range p {
				curve[w.lo] += scale * w.weight
				curve[w.hi] -= scale * w.weight
			}
		}
	})
	for i, curve := range curves {
		for cell := 1; cell < len(curve); cell++ {
			curve[cell] += curve[cell-1]
		}
		curves[i] = curve[:len(curve)-1]
	}
	return curves
}

// leaves calls visit for each leaf of each tree that a point can be in, with f
// weighed and what the leaf adds to the prediction there. Constants are left
// out.
func (m *Model) leaves(f *leaf, visit func(mean float64)) {
	for _, each := range m.forests {
		_, unit := each.Scale()
		all := each.Trees()
		for _, t := range all {
			f.walk(t, func(mean float64, covers []cover) {
				if f.weigh(covers); f.chance > 0 {
					visit(unit * mean / float64(len(all)))
				}
			})
		}
	}
}

// mean returns what a mean from leaves is in the unit of the objective.
func (m *Model) mean(v float64) Number {
	for _, f := range m.forests {
		shift, _ := f.Scale()
		v += shift
	}
	return Number(m.shift + m.unit*v)
}

// PairShare is the importance of two parameters together, beyond that of each.
type PairShare struct {
	Names [2]string `json:"names"`
	// Share is the part of the variance that their interaction explains, from
	// 0 to 1.
	Share float64 `json:"share"`
}

// Interactions returns the share of each two parameters that a point may have
// both, the most important first. They are many: half the square of how many
// parameters there are.
func (m *Model) Interactions() []PairShare {
	l := newLattice(m.space, pairResolution)
	var pairs []*pair
	for i := range l.dims {
		for j := range i {
			if p, ok := l.newPair(j, i); ok {
				pairs = append(pairs, p)
			}
		}
	}
	m.fill(l, pairs)
	shares := make([]PairShare, len(pairs))
	for k, p := range pairs {
		names := [2]string{m.space.Parameter(min(p.i, p.j)).Name, m.space.Parameter(max(p.i, p.j)).Name}
		shares[k] = PairShare{names, m.share(p.interaction(len(l.dims[p.j].at)))}
	}
	slices.SortStableFunc(shares, func(a, b PairShare) int { return cmp.Compare(b.Share, a.Share) })
	return shares
}

// fill computes the tables of pairs.
func (m *Model) fill(l *lattice, pairs []*pair) {
	for _, p := range pairs {
		// One more row and column take what ends there.
		p.table = make([]float64, (len(l.dims[p.i].at)+1)*(len(l.dims[p.j].at)+1))
	}
	f := l.newLeaf()
	var a, b profile
	m.leaves(f, func(mean float64) {
		for _, p := range pairs {
			scale := mean * f.scale(p)
			if scale == 0 {
				continue
			}
			columns := len(l.dims[p.j].at) + 1
			a, b = f.profiles(a[:0], b[:0], p)
			for _, v := range a {
				for _, w := range b {
					d := scale * v.weight * w.weight
					p.table[v.lo*columns+w.lo] += d
					p.table[v.lo*columns+w.hi] -= d
					p.table[v.hi*columns+w.lo] -= d
					p.table[v.hi*columns+w.hi] += d
				}
			}
		}
	})
	for _, p := range pairs {
		p.sum(len(l.dims[p.j].at))
	}
}

// sum makes the table of differences one of values.
func (p *pair) sum(columns int) {
	wide := columns + 1
	rows := len(p.table)/wide - 1
	for r := range rows {
		for c := 1; c < columns; c++ {
			p.table[r*wide+c] += p.table[r*wide+c-1]
		}
		for c := 0; r > 0 && c < columns; c++ {
			p.table[r*wide+c] += p.table[(r-1)*wide+c]
		}
	}
	for r := range rows { // close the gaps of the extra column
		copy(p.table[r*columns:(r+1)*columns], p.table[r*wide:r*wide+columns])
	}
	p.table = p.table[:rows*columns]
}
