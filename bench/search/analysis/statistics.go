// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// Interval is an estimate with a 95 % confidence interval.
type Interval struct{ Mean, Low, High float64 }

// resamples of a bootstrap.
const resamples = 2000

// Bootstrap returns the mean of some values with the percentile interval of
// means of resamples. No values give NaN.
func Bootstrap(values []float64) Interval {
	if len(values) == 0 {
		return Interval{math.NaN(), math.NaN(), math.NaN()}
	}
	numbers := rand.New(rand.NewPCG(1, uint64(len(values))))
	means := make([]float64, resamples)
	for i := range means {
		for range values {
			means[i] += values[numbers.IntN(len(values))]
		}
		means[i] /= float64(len(values))
	}
	slices.Sort(means)
	return Interval{mean(values), means[resamples/40], means[resamples-1-resamples/40]}
}

// Geometric returns the geometric mean of some positive values with its
// bootstrap interval.
func Geometric(values []float64) Interval {
	logs := make([]float64, len(values))
	for i, v := range values {
		logs[i] = math.Log(v)
	}
	b := Bootstrap(logs)
	return Interval{math.Exp(b.Mean), math.Exp(b.Low), math.Exp(b.High)}
}

func mean(values []float64) (m float64) {
	for _, v := range values {
		m += v / float64(len(values))
	}
	return m
}

// Ranks returns the rank of each value, 1 for the least; equal values share
// the mean of their ranks.
func Ranks(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	ranks := make([]float64, len(values))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && values[order[to]] == values[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = float64(from+to+1) / 2
		}
		from = to
	}
	return ranks
}

// Paired says how one list of values compares with another, pair by pair.
type Paired struct {
	Wins, Losses, Ties int
	// P is that of Wilcoxon's signed-rank test, two-sided: how likely so great
	// a difference is between equals. It is 1 where there are only ties.
	P float64
}

// Compare tests differences, negative where the first is better.
func Compare(differences []float64) Paired {
	var c Paired
	var sizes, signs []float64
	for _, d := range differences {
		switch {
		case d < 0:
			c.Wins++
		case d > 0:
			c.Losses++
		default:
			c.Ties++
			continue
		}
		sizes, signs = append(sizes, math.Abs(d)), append(signs, d)
	}
	ranks := Ranks(sizes)
	lower, upper := 0.0, 0.0
	for i, r := range ranks {
		if signs[i] < 0 {
			lower += r
		} else {
			upper += r
		}
	}
	c.P = signedRankP(ranks, math.Min(lower, upper))
	return c
}

// signedRankP returns twice the probability that the ranks of one sign add up
// to at most least, where each sign is as likely: exactly for up to 60 ranks,
// and by the normal approximation beyond.
func signedRankP(ranks []float64, least float64) float64 {
	if len(ranks) > 60 {
		var total, squares float64
		for _, r := range ranks {
			total, squares = total+r, squares+r*r
		}
		z := (least - total/2 + 0.5) / math.Sqrt(squares/4)
		return math.Min(1, math.Erfc(-z/math.Sqrt2))
	}
	ways := []float64{1} // by twice the sum, which is whole though ranks may be halves
	for _, r := range ranks {
		step := int(2 * r)
		next := make([]float64, len(ways)+step)
		for s, w := range ways {
			next[s] += w / 2
			next[s+step] += w / 2
		}
		ways = next
	}
	p := 0.0
	for s := 0; s <= int(2*least); s++ {
		p += ways[s]
	}
	return math.Min(1, 2*p)
}
