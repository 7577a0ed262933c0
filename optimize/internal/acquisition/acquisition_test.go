// SPDX-License-Identifier: Apache-2.0

package acquisition

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func equal(got, want, tolerance float64) bool {
	return got == want || math.Abs(got-want) <= tolerance*(1+math.Abs(want))
}

// TestNormal compares with values computed with sixty digits.
func TestNormal(t *testing.T) {
	t.Parallel()
	for _, v := range []struct{ z, logH, slope, logCumulative float64 }{
		{-1.0e+6, -500000000028.54996, 1000000.000002, -500000000014.73445},
		{-100.0, -5010.1295788002498, 100.01999400419587, -5005.5242086942051},
		{-30.0, -457.724653760598, 30.066446154162419, -454.3212439563432},
		{-25.5, -332.52588446220498, 25.578073358175352, -329.28414898717953},
		{-24.5, -307.44625385773019, 24.581229341151867, -304.24427074096371},
		{-10.0, -55.553122036122356, 10.194383033412553, -53.231285150512471},
		{-5.0, -16.74430116266099, 5.3618162412880885, -15.064998393988726},
		{-1.5, -3.5299359208057099, 2.2795806941564462, -2.7059444008238898},
		{-1.0, -2.4851210257126413, 1.9042712333296918, -1.8410216450092635},
		{-0.5, -1.6205162643873199, 1.5598731483480797, -1.1759117615936186},
		{0.0, -0.91893853320467274, 1.2533141373155003, -0.69314718055994531},
		{1.0, 0.08002621884930694, 0.77663872520173926, -0.17275377902344989},
		{8.0, 2.0794415416798359, 0.12499999999999992, -6.2209605742717861e-16},
	} {
		h, slope := logH(v.z)
		if !equal(h, v.logH, 1e-12) || !equal(slope, v.slope, 1e-9) {
			t.Errorf("logH(%v): %.17g, %.17g: want %.17g, %.17g", v.z, h, slope, v.logH, v.slope)
		}
		if got := logCumulative(v.z); !equal(got, v.logCumulative, 1e-12) {
			t.Errorf("logCumulative(%v): %.17g, want %.17g", v.z, got, v.logCumulative)
		}
	}
}

// TestSlopes compares with numeric differentiation.
func TestSlopes(t *testing.T) {
	t.Parallel()
	front := [][]float64{{0, 2, 1}, {1, 1, 2}, {2, 0, 0.5}, {0.5, 1.5, 0.7}}
	for name, tc := range map[string]struct {
		f        Function
		outcomes int
	}{
		"LogImprovement": {LogImprovement(0.3), 1},
		"LogProbability": {LogProbability(0.3), 1},
		"Bound":          {Bound(1.8), 1},
		"Feasible":       {Feasible(LogImprovement(0.3), 1), 3},
		"OnlyFeasible":   {Feasible(nil, 1), 2},
		"Hypervolume2":   {LogHypervolume([][]float64{{0, 2}, {1, 1}, {2, 0}}, []float64{3, 3}), 2},
		"Hypervolume3":   {LogHypervolume(front, []float64{3, 3, 3}), 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) {
				at := make([]Prediction, tc.outcomes)
				for i := range at {
					at[i] = Prediction{rapid.Float64Range(-2, 4).Draw(rt, "mean"), rapid.Float64Range(0.1, 2).Draw(rt, "deviation")}
				}
				slopes, unused := make([]Slope, len(at)), make([]Slope, len(at))
				tc.f(at, slopes)
				difference := func(v *float64) float64 {
					const h = 1e-6
					was := *v
					*v = was + h
					up := tc.f(at, unused)
					*v = was - h
					down := tc.f(at, unused)
					*v = was
					return (up - down) / (2 * h)
				}
				for i := range at {
					if want := difference(&at[i].Mean); !equal(slopes[i].Mean, want, 1e-5) {
						rt.Errorf("at %v: slope by mean %d: %v, want %v", at, i, slopes[i].Mean, want)
					}
					if want := difference(&at[i].Deviation); !equal(slopes[i].Deviation, want, 1e-5) {
						rt.Errorf("at %v: slope by deviation %d: %v, want %v", at, i, slopes[i].Deviation, want)
					}
				}
			})
		})
	}
}

// TestHypervolumeCertain checks the exact growth of volume, where there is
// next to no doubt about the outcome.
func TestHypervolumeCertain(t *testing.T) {
	t.Parallel()
	front2 := [][]float64{{0, 2}, {1, 1}, {2, 0}}
	front3 := [][]float64{{0, 0, 2}, {1, 1, 1}}
	tests := map[string]struct {
		front              [][]float64
		reference, outcome []float64
		want               float64
	}{
		"Between":    {front2, []float64{3, 3}, []float64{0.5, 0.5}, 0.5*1.5 + 1*0.5},
		"Dominating": {front2, []float64{3, 3}, []float64{-1, -1}, 16 - 6},
		"Extreme":    {front2, []float64{3, 3}, []float64{-1, 2.5}, 0.5},
		"NoFront":    {nil, []float64{1, 1}, []float64{0, -1}, 2},
		"Outside":    {[][]float64{{5, 5}}, []float64{1, 1}, []float64{0, -1}, 2},
		// Of (0,0,0) to (3,3,3) 27, less 9·1 of the first and 2·2·2 of the
		// second, which share 2·2·1.
		"Three": {front3, []float64{3, 3, 3}, []float64{0, 0, 0}, 27 - 9 - 8 + 4},
		// Grows only in the third, from 2 to 1.5 beside the second point.
		"ThreeBeside": {front3, []float64{3, 3, 3}, []float64{0, 0, 1.5}, (9 - 4) * 0.5},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcomes := make([]Prediction, len(tc.outcome))
			for i, v := range tc.outcome {
				outcomes[i] = Prediction{v, 1e-9}
			}
			got := math.Exp(LogHypervolume(tc.front, tc.reference)(outcomes, make([]Slope, len(outcomes))))
			if !equal(got, tc.want, 1e-6) {
				t.Errorf("volume grows by %v: want %v", got, tc.want)
			}
		})
	}
}

// TestHypervolumeExpected compares with an average over many outcomes.
func TestHypervolumeExpected(t *testing.T) {
	t.Parallel()
	front := [][]float64{{0, 2, 1}, {1, 1, 2}, {2, 0, 0.5}, {0.5, 1.5, 0.7}}
	reference := []float64{3, 3, 3}
	outcomes := []Prediction{{0.4, 0.7}, {1.1, 0.3}, {0.9, 0.5}}
	growth := LogHypervolume(front, reference)
	got := math.Exp(growth(outcomes, make([]Slope, 3)))
	const n = 40 // quantiles of each outcome
	sum, unused := 0.0, make([]Slope, 3)
	for i := range n * n * n {
		certain := make([]Prediction, 3)
		for m, k := range []int{i % n, i / n % n, i / n / n} {
			u := (float64(k) + 0.5) / n
			certain[m] = Prediction{outcomes[m].Mean - outcomes[m].Deviation*math.Sqrt2*math.Erfcinv(2*u), 1e-9}
		}
		sum += math.Exp(growth(certain, unused))
	}
	if want := sum / (n * n * n); math.Abs(got-want) > 0.01*want {
		t.Errorf("volume grows by %v: want about %v", got, want)
	}
}
