// SPDX-License-Identifier: Apache-2.0

package bayes

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"diwan.dev/diwan/optimize/internal/gp"
)

var nan = math.NaN()

// TestFeatures checks the distances that features give to points.
func TestFeatures(t *testing.T) {
	t.Parallel()
	f := newFeatures([]Dimension{{}, {Values: 3, Categorical: true}, {Conditional: true}})
	distance := func(a, b []float64) float64 {
		sum := 0.0
		for i, v := range f.of(a) {
			sum += (v - f.of(b)[i]) * (v - f.of(b)[i])
		}
		return math.Sqrt(sum)
	}
	a := []float64{0.2, 1.0 / 6, 0.4}
	for _, tc := range []struct {
		reason string
		b      []float64
		want   float64
	}{
		{"The same.", a, 0},
		{"A number.", []float64{0.7, 1.0 / 6, 0.4}, 0.5},
		{"One category is as far as another.", []float64{0.2, 0.5, 0.4}, 1},
		{"Is it?", []float64{0.2, 5.0 / 6, 0.4}, 1},
		{"A value is away from none.", []float64{0.2, 1.0 / 6, nan}, math.Sqrt(0.25 + 0.01)},
	} {
		if got := distance(a, tc.b); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("%s Distance of %v and %v is %v: want %v", tc.reason, a, tc.b, got, tc.want)
		}
	}
	if got := distance([]float64{0, 0.5, nan}, []float64{0, 0.5, nan}); got != 0 {
		t.Errorf("distance of no value and no value is %v", got)
	}
}

// TestStage checks that a stage is itself one, and at most a tenth behind.
func TestStage(t *testing.T) {
	t.Parallel()
	for n := 1; n < 5000; n++ {
		at := stage(n)
		if at > n || stage(at) != at || float64(n-at) > float64(at)/10+1 {
			t.Errorf("stage of %d is %d, of that %d", n, at, stage(at))
		}
	}
}

// TestOutputs checks how failures, infinities and constraints become numbers.
func TestOutputs(t *testing.T) {
	t.Parallel()
	d := Data{Objectives: 1, Observations: []Observation{
		{Losses: []float64{1}, Violations: []float64{-3}},
		{Losses: nil},
		{Losses: []float64{math.Inf(1)}, Violations: []float64{math.Inf(1)}},
		{Losses: []float64{math.Inf(-1)}, Violations: []float64{0}},
		{Losses: []float64{2}},
	}}
	o := d.objective(0, 0).outputs
	if !(o[3] < o[0] && o[0] < o[4] && o[4] < o[2] && o[1] == o[2]) {
		t.Errorf("outputs %v: want the order of the losses, and the failure as bad as the worst", o)
	}
	c := d.constraint(0)
	if diff := cmp.Diff([]int{0, 2, 3}, c.rows); diff != "" {
		t.Errorf("rows of the constraint: -want, +got:\n%s", diff)
	}
	if !(c.outputs[0] < 0 && c.outputs[1] > 0 && c.outputs[2] == 0) {
		t.Errorf("outputs %v: want the signs of the violations", c.outputs)
	}
	if best := d.best(d.objective(0, 0)); best != o[3] {
		t.Errorf("best is %v: want %v", best, o[3])
	}
}

// TestRegion checks that local and global coordinates are each other's inverse
// within the cube, and that points with another category are not in the region.
func TestRegion(t *testing.T) {
	t.Parallel()
	dimensions := []Dimension{{}, {Values: 2, Categorical: true}, {}, {Conditional: true}}
	s := New(dimensions, DefaultConfig())
	centre := []float64{0.3, 0.25, 0.6, nan}
	rapid.Check(t, func(rt *rapid.T) {
		unit := rapid.Float64Range(0, 1)
		p := []float64{unit.Draw(rt, "x"), 0.25, unit.Draw(rt, "y"), nan}
		d := Data{Observations: []Observation{{Point: centre}, {Point: p}, {Point: []float64{0.3, 0.75, 0.6, nan}}, {Point: []float64{0.3, 0.25, 0.6, 0.5}}}}
		g := s.region(d, make([]float64, 4), centre, gp.Kernel{Lengths: []float64{0.5, 1, 3, 1}})
		if diff := cmp.Diff([]int{0, 1}, g.rows); diff != "" {
			rt.Fatalf("observations in the region: -want, +got:\n%s", diff)
		}
		want := math.Hypot((p[0]-0.3)/0.5, (p[2]-0.6)/3)
		if math.Abs(g.distances[1]-want) > 1e-12 {
			rt.Errorf("distance of %v is %v: want %v", p, g.distances[1], want)
		}
		back := g.global(g.local(p, 0.1), 0.1)
		if math.Abs(back[0]-p[0])+math.Abs(back[2]-p[2]) > 1e-12 || back[1] != 0.25 {
			rt.Errorf("%v comes back as %v", p, back)
		}
	})
}

// TestOrient checks that distances take a valley across the dimensions for what
// it is: along it the observations are no farther away than across it.
func TestOrient(t *testing.T) {
	t.Parallel()
	s := New(make([]Dimension, 2), DefaultConfig())
	random := sequence()
	centre := []float64{0.5, 0.5}
	d := Data{Observations: []Observation{{Point: centre}}}
	losses := []float64{0}
	for range 40 {
		along, across := random()-0.5, 0.01*(random()-0.5)
		d.Observations = append(d.Observations, Observation{Point: []float64{0.5 + 0.3*(along+across), 0.5 + 0.3*(along-across)}})
		losses = append(losses, along*along+1e4*across*across)
	}
	g := s.region(d, losses, centre, gp.Kernel{Lengths: []float64{1, 1}})
	if !g.oriented {
		t.Fatal("40 observations do not orient two dimensions")
	}
	size := func(p []float64) float64 {
		row := g.local(p, 1)
		return math.Hypot(row[0]-0.5, row[1]-0.5)
	}
	if ratio := size([]float64{0.6, 0.6}) / size([]float64{0.503, 0.497}); ratio > 10 {
		t.Errorf("a tenth along the valley is %v times as far as three thousandths across it: want fewer, of 33 by the eye", ratio)
	}
	p := []float64{0.55, 0.52}
	back := g.global(g.local(p, 0.1), 0.1)
	if math.Abs(back[0]-p[0])+math.Abs(back[1]-p[1]) > 1e-9 {
		t.Errorf("%v comes back as %v", p, back)
	}
}

// bowl is a quadratic function whose least value is 0, at 0.3 in each
// dimension, ill-conditioned: it is 10⁴ times as steep in the last dimension.
func bowl(u []float64) float64 {
	sum := 0.0
	for i, v := range u {
		sum += math.Pow(1e4, float64(i)/float64(len(u)-1)) * (v - 0.3) * (v - 0.3)
	}
	return sum
}

// TestLocal checks that a local proposal is nearly the minimum of a quadratic
// function, when the observations around the best say where it is.
func TestLocal(t *testing.T) {
	t.Parallel()
	s := New(make([]Dimension, 3), DefaultConfig())
	random := sequence()
	d := Data{Objectives: 1}
	for range 25 {
		u := []float64{0.2 + 0.3*random(), 0.2 + 0.3*random(), 0.2 + 0.3*random()}
		d.Observations = append(d.Observations, Observation{Point: u, Losses: []float64{bowl(u)}})
	}
	o := d.objective(0, 0)
	best := d.bestPoints([]outcome{o})[0]
	u, ok := s.local(d, best, gp.Kernel{Lengths: []float64{1, 1, 1}}, Query{Snap: anywhere, Random: random})
	if !ok || bowl(u) > bowl(best)/100 {
		t.Errorf("local proposal %v, %v has the value %v: want far less than %v", u, ok, bowl(u), bowl(best))
	}
}

// TestChosen checks which observations stand for many.
func TestChosen(t *testing.T) {
	t.Parallel()
	var o outcome
	for i := range 100 {
		o.rows = append(o.rows, i)
		o.outputs = append(o.outputs, float64((i*37)%100))
	}
	chosen := o.chosen(20).rows
	if len(chosen) != 20 || !slices.IsSorted(chosen) || len(slices.Compact(slices.Clone(chosen))) != 20 {
		t.Errorf("chosen are %v: want 20, sorted, each once", chosen)
	}
	for i, v := range o.outputs {
		if v < 10 && !slices.Contains(chosen, i) {
			t.Errorf("observation %d is among the best tenth, but not chosen", i)
		}
	}
}

func anywhere(u []float64) ([]float64, bool) { return u, true }

// sequence returns numbers in (0, 1) that look random.
func sequence() func() float64 {
	state := uint64(1)
	return func() float64 {
		state = state*6364136223846793005 + 1442695040888963407
		return (float64(state>>12) + 0.5) / (1 << 52)
	}
}

// BenchmarkPropose measures proposals in ten dimensions while a search grows by
// a tenth, so that the kernel is found once for all of them.
func BenchmarkPropose(b *testing.B) {
	for _, n := range []int{50, 200, 1000} {
		b.Run(fmt.Sprint("past=", n), func(b *testing.B) {
			random := sequence()
			d := Data{Objectives: 1}
			for range n + n/10 {
				u := make([]float64, 10)
				for i := range u {
					u[i] = random()
				}
				d.Observations = append(d.Observations, Observation{Point: u, Losses: []float64{bowl(u)}})
			}
			all := d.Observations
			s := New(make([]Dimension, 10), DefaultConfig())
			for i := 0; b.Loop(); i++ {
				if i%(n/10) == 0 {
					clear(s.fits)
				}
				d.Observations = all[:n+i%(n/10)]
				s.Propose(d, Query{Turn: i, Snap: anywhere, Random: random})
			}
		})
	}
}
