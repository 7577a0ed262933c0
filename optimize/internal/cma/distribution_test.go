// SPDX-License-Identifier: Apache-2.0

package cma

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// generation returns fixed points, from the best to the worst by a fixed
// function.
func generation(g, size, n int) []Member {
	members := make([]Member, size)
	for k := range members {
		members[k].X = make([]float64, n)
		for i := range n {
			x := 0.5 + 0.4*math.Sin(float64(7*g+3*k+5*i+1))
			members[k].X[i] = math.Round(1000*x) / 1000
		}
	}
	value := func(m Member) (v float64) {
		for i, x := range m.X {
			v += (x - 0.2*float64(i+1)) * (x - 0.2*float64(i+1)) * float64(i+1)
		}
		return v
	}
	slices.SortStableFunc(members, func(a, b Member) int {
		if value(a) < value(b) {
			return -1
		}
		return 1
	})
	return members
}

// TestUpdateRecorded compares three generations with what the Python package
// cmaes 0.13.1 makes of the same points. Its CMA object, made with
// mean [0.3, 0.5, 0.8], sigma 0.2 and population_size 7, was given the weights
// and the rate c_μ of the tutorial's newer version, which has 1/4 in the
// numerator: _cmu = 2·(1/4+μ+1/μ−2)/((n+2)²+μ) for μ = _mu_eff, and _weights
// scaled for it by equations 50 to 53. Then ask() and tell() three times.
func TestUpdateRecorded(t *testing.T) {
	t.Parallel()
	type state struct {
		Mean       []float64
		Sigma      float64
		Covariance []float64
		StepPath   []float64
		Path       []float64
	}
	want := []state{
		{
			[]float64{0.24473799699091126, 0.7134786403992238, 0.8758630578876816}, 0.19360463782728918,
			[]float64{0.8698535704451966, -0.011026733881678928, 0.1793926297522349, -0.011026733881678928, 1.250218104170637, 0.014711063291732732, 0.1793926297522349, 0.014711063291732732, 0.7299043579827457},
			[]float64{-0.3364771836312581, 1.2998206321827899, 0.46191210361130053},
			[]float64{-0.3723426044788746, 1.438369741208677, 0.5111477510684023},
		},
		{
			[]float64{0.11192734339341506, 0.44460501528377555, 0.8569550846715323}, 0.18546740394614092,
			[]float64{0.8980982088394608, 0.2318310089710176, 0.3100733674747427, 0.2318310089710176, 1.5124618319809784, -0.03854056955235052, 0.3100733674747427, -0.03854056955235052, 0.5584872951878446},
			[]float64{-1.1053567410521488, -0.7566218947675399, 0.25221047524280993},
			[]float64{-1.0886841444875048, -1.2368445659063187, 0.09391182127630116},
		},
		{
			[]float64{0.15214443107403608, 0.22504799359451666, 0.6919982357217325}, 0.2142214376539037,
			[]float64{0.7852695975519977, 0.2101626620364685, 0.40348379058115036, 0.21016266203646844, 2.0300227745793813, 0.30969062216532584, 0.4034837905811503, 0.30969062216532584, 0.6693795320685915},
			[]float64{0.16135497618230077, -1.7373991546287737, -1.621169959282073},
			[]float64{-0.18812000338132828, -2.1409334984864183, -1.157096105978015},
		},
	}
	d := NewDistribution([]float64{0.3, 0.5, 0.8}, 0.2, 7, false, Grid{})
	for g, want := range want {
		d.Update(generation(g, 7, 3))
		got := state{d.mean, d.sigma, d.covariance, d.stepPath, d.path}
		if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-6, 0)); diff != "" {
			t.Fatalf("after generation %d: -recorded, +got:\n%s", g+1, diff)
		}
	}
}

// TestRates compares the constants with those of the same package.
func TestRates(t *testing.T) {
	t.Parallel()
	r := newRates(3, 7, false)
	got := []float64{r.mass, r.rankOne, r.rankParents, r.stepPath, r.damping, r.path}
	want := []float64{2.2548150822016044, 0.09640963257927214, 0.0695884692329107, 0.4149090010980616, 1.4149090010980616, 0.5588013228860189}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-7, 0)); diff != "" {
		t.Errorf("constants: -recorded, +got:\n%s", diff)
	}
	weights := []float64{0.5856451065097651, 0.29282255325488254, 0.12153234023535246, 0, -0.4241269418431741, -0.7706638857059224, -1.0636566969842556}
	if diff := cmp.Diff(weights, r.weights, cmpopts.EquateApprox(1e-7, 1e-15)); diff != "" {
		t.Errorf("weights: -recorded, +got:\n%s", diff)
	}
}

// TestSeparable checks that the update of a diagonal covariance is the diagonal
// of the full update with its rates.
func TestSeparable(t *testing.T) {
	t.Parallel()
	full := NewDistribution([]float64{0.3, 0.5, 0.8}, 0.2, 7, false, Grid{})
	separable := NewDistribution([]float64{0.3, 0.5, 0.8}, 0.2, 7, true, Grid{})
	full.rates = separable.rates
	full.Update(generation(0, 7, 3))
	separable.Update(generation(0, 7, 3))
	for i, got := range separable.covariance {
		if want := full.covariance[i*3+i]; math.Abs(got-want) > 1e-12 {
			t.Errorf("variance %d is %v: want %v", i, got, want)
		}
	}
	if diff := cmp.Diff(full.mean, separable.mean, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Errorf("mean: -full, +separable:\n%s", diff)
	}
}

// TestDecomposed checks B·D²·Bᵀ = C, and that Draw and whiten undo each other.
func TestDecomposed(t *testing.T) {
	t.Parallel()
	const n = 4
	d := NewDistribution(make([]float64, n), 0.3, 8, false, Grid{})
	for g := range 30 {
		d.Update(generation(g, 8, n))
	}
	d.factor()
	for i := range n {
		for j := range n {
			sum := 0.0
			for k, s := range d.scales {
				sum += d.basis[i*n+k] * s * s * d.basis[j*n+k]
			}
			if want := d.covariance[i*n+j]; math.Abs(sum-want) > 1e-9*d.scales[n-1]*d.scales[n-1] {
				t.Errorf("B·D²·Bᵀ has %v at %d, %d: want %v", sum, i, j, want)
			}
		}
	}
	z := []float64{0.5, -1, 2, 0.1}
	x := d.Draw(z)
	for i := range x {
		x[i] = (x[i] - d.mean[i]) / d.sigma
	}
	if got, want := norm(d.whiten(x)), norm(z); math.Abs(got-want) > 1e-9 {
		t.Errorf("C^(-1/2) of a draw has length %v: want that of z, %v", got, want)
	}
}

// TestForeign checks that a point that is far away moves the mean no farther
// than a likely one.
func TestForeign(t *testing.T) {
	t.Parallel()
	d := NewDistribution([]float64{0, 0}, 0.1, 6, false, Grid{})
	members := make([]Member, 6)
	for k := range members {
		members[k] = Member{X: []float64{1e6, 1e6}, Foreign: true}
	}
	d.Update(members)
	if got, want := norm(d.mean), 0.1*(math.Sqrt2+1); math.Abs(got-want) > 1e-9 {
		t.Errorf("mean moved by %v: want %v", got, want)
	}
}

// TestMarginRecorded compares with what CMAwM of the Python package cmaes
// 0.13.1 makes of mean and stretch. It was made with bounds [0, 7] and [0, 1],
// steps 1 and 1/4, and population_size 7 in three dimensions, the third
// continuous; the state is that of its _cma before and after the correction.
func TestMarginRecorded(t *testing.T) {
	t.Parallel()
	borders := [][]float64{{0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5}, {0.125, 0.375, 0.625, 0.875}, nil}
	for name, tc := range map[string]struct {
		mean, variances []float64
		sigma           float64
		want, stretch   []float64
	}{
		"Stretched": {
			[]float64{3.207138214530269, 0.06386565016632922, 0.5}, []float64{0.8151186238484818, 0.7990766003361365, 0.9680771034224225}, 0.039986040248787436,
			[]float64{3.0, 0.0653651001391175, 0.5}, []float64{6.992315364595693, 1, 1},
		},
		"OneSided": {
			[]float64{3.457138214530269, 0.3138656501663292, 0.5}, []float64{0.8151186238484817, 0.7990766003361365, 0.9680771034224225}, 0.039986040248787436,
			[]float64{3.1228780344570186, 0.2589623320257095, 0.5}, []float64{8.710719301205948, 1.8921253473387774, 1},
		},
		"Wide": {
			[]float64{3.2713821453026917, 0.5386565016632923, 0.5}, []float64{0.8151186238484808, 0.7990766003361375, 0.9680771034224225}, 0.39986040248787436,
			[]float64{3.2560371845500904, 0.5386565016632923, 0.5}, []float64{1.0572900843470536, 1, 1},
		},
		"Ends": {
			[]float64{0.30285528581210763, 0.9955462600665317, 0.5}, []float64{0.8151186238484809, 0.7990766003361374, 0.9680771034224225}, 0.015994416099514977,
			[]float64{0.4759077873931724, 0.898853959944353, 0.5}, []float64{1, 1, 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := NewDistribution(tc.mean, tc.sigma, 7, true, Grid{Borders: borders, Margin: 1. / (3 * 7)})
			copy(d.covariance, tc.variances)
			d.keepMargin()
			if diff := cmp.Diff(tc.want, d.mean, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
				t.Errorf("mean: -recorded, +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.stretch, d.stretch, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
				t.Errorf("stretch: -recorded, +got:\n%s", diff)
			}
		})
	}
}

// TestWarmStart compares with a mixture of two points computed by hand.
func TestWarmStart(t *testing.T) {
	t.Parallel()
	mean, sigma, c := WarmStart([][]float64{{0.2, 0.5}, {0.4, 0.5}})
	if diff := cmp.Diff([]float64{0.3, 0.5}, mean, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Errorf("mean: -want, +got:\n%s", diff)
	}
	// Variances are 0.01 of the points and 0.01 of the smoothing, and 0.01.
	if want := math.Pow(0.02*0.01, 0.25); math.Abs(sigma-want) > 1e-12 {
		t.Errorf("sigma is %v: want %v", sigma, want)
	}
	if diff := cmp.Diff([]float64{math.Sqrt2, 0, 0, math.Sqrt2 / 2}, c, cmpopts.EquateApprox(1e-12, 1e-12)); diff != "" {
		t.Errorf("covariance: -want, +got:\n%s", diff)
	}
}
