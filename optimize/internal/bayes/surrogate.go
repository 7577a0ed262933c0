// SPDX-License-Identifier: Apache-2.0

package bayes

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"

	"diwan.dev/diwan/optimize/internal/gp"
)

// outcomes is one kind of outcome as a function of the data, and of the bend of
// its warp.
type outcomes func(d *Data, bend float64) outcome

// model returns the process that models an outcome, and the outcome of the
// observations that it has, without their noise. Kernel and bend come from the
// observations up to a stage, so that they serve until the next.
func (s *Search) model(d Data, of outcomes) (*gp.Model, outcome) {
	early := d
	early.Observations = d.Observations[:stage(len(d.Observations))]
	f := s.fitted(early, of)
	all := of(&d, f.bend).chosen(s.config.Limit)
	m := gp.New(f.kernel, s.features.groups, s.rows(d, all), all.outputs)
	all.outputs = m.Smoothed()
	return m, all
}

// fit is what is found from observations: the likeliest kernel and bend.
type fit struct {
	kernel gp.Kernel
	bend   float64
}

// bends are those that are tried. The middle one makes outputs of a quadratic
// function nearly those of its distance from the minimum, the last one spreads
// three magnitudes.
var bends = [...]float64{0, 2, 50}

// fitted returns the fit to some observations, and remembers it.
func (s *Search) fitted(d Data, of outcomes) fit {
	few := of(&d, 0).chosen(min(s.config.Limit, bendLimit))
	if len(few.rows) == 0 {
		return fit{kernel: s.prior.Mode()}
	}
	all := of(&d, 0).chosen(min(s.config.Limit, fitLimit))
	key := fingerprint(s.rows(d, all), all.outputs)
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.fits[key]; ok {
		return f
	}
	f := s.likeliestBend(d, of, few)
	all = of(&d, f.bend).chosen(min(s.config.Limit, fitLimit))
	f.kernel, _ = gp.Fit(s.prior, f.kernel, fitSteps, s.features.groups, s.rows(d, all), all.outputs)
	if len(s.fits) >= remembered {
		clear(s.fits)
	}
	s.fits[key] = f
	return f
}

// likeliestBend returns the bend with which some observations are likeliest, and
// a first guess of the kernel.
func (s *Search) likeliestBend(d Data, of outcomes, few outcome) fit {
	rows := s.rows(d, few)
	f, likeliest := fit{kernel: s.prior.Mode()}, math.Inf(-1)
	for _, bend := range bends {
		bent := of(&d, bend).chosen(len(rows))
		kernel, density := gp.Fit(s.prior, f.kernel, bendSteps, s.features.groups, rows, bent.outputs)
		if density += bent.logSlopes(); density > likeliest {
			f, likeliest = fit{kernel, bend}, density
		}
		if few.losses == nil || len(rows) < bentFrom {
			break
		}
	}
	return f
}

const (
	// fitSteps and bendSteps are how many steps a fit takes at most, fitLimit
	// and bendLimit how many observations it is made to.
	fitSteps, bendSteps = 30, 15
	fitLimit, bendLimit = 150, 60
	// bentFrom is how many observations tell whether a bend is likelier.
	bentFrom   = 8
	remembered = 64
)

// logSlopes returns what turns the logarithm of the density of the outputs into
// that of losses, so that densities for different bends compare.
func (o outcome) logSlopes() float64 {
	sum := 0.0
	for _, v := range o.losses {
		sum += o.warp.LogSlope(v)
	}
	return sum
}

// rows returns the features of the observations that an outcome has.
func (s *Search) rows(d Data, o outcome) [][]float64 {
	rows := make([][]float64, len(o.rows))
	for i, row := range o.rows {
		rows[i] = s.features.of(d.Observations[row].Point)
	}
	return rows
}

// stage returns the number of observations, at most n, with which the kernel
// for n was found.
func stage(n int) int {
	at := min(n, firstStage)
	for {
		next := at + max(1, at/10)
		if next > n {
			return at
		}
		at = next
	}
}

const firstStage = 4

// fingerprint returns a number that different data do not share.
func fingerprint(rows [][]float64, outputs []float64) [2]uint64 {
	hash := fnv.New128a()
	var bytes []byte
	for i, row := range rows {
		bytes = bytes[:0]
		for _, v := range append(row[:len(row):len(row)], outputs[i]) {
			b := math.Float64bits(v)
			bytes = append(bytes, byte(b), byte(b>>8), byte(b>>16), byte(b>>24), byte(b>>32), byte(b>>40), byte(b>>48), byte(b>>56))
		}
		hash.Write(bytes)
	}
	var key [2]uint64
	for i, b := range hash.Sum(nil) {
		key[i/8] = key[i/8]<<8 | uint64(b)
	}
	return key
}

// chosen returns the outcome of some observations at most that stand for all:
// the best of them, half as many as the limit, and others evenly spread over the
// rest.
func (o outcome) chosen(limit int) outcome {
	n := len(o.rows)
	if n <= limit {
		return o
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(o.outputs[a], o.outputs[b]) })
	best := limit / 2
	rest := slices.Sorted(slices.Values(order[best:]))
	chosen := order[:best:best]
	for i := range limit - best {
		chosen = append(chosen, rest[i*len(rest)/(limit-best)])
	}
	slices.Sort(chosen)
	some := outcome{rows: pick(o.rows, chosen), outputs: pick(o.outputs, chosen), warp: o.warp}
	if o.losses != nil {
		some.losses = pick(o.losses, chosen)
	}
	return some
}

func pick[T any](from []T, indices []int) []T {
	picked := make([]T, len(indices))
	for i, at := range indices {
		picked[i] = from[at]
	}
	return picked
}
