// SPDX-License-Identifier: Apache-2.0

package forest

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"diwan.dev/diwan/optimize/internal/random"
)

var nan = math.NaN()

// one is the configuration of a single tree grown to the end.
var one = Config{Kind: RandomForest, Trees: 1, MinLeaf: 1, Features: 1}

// growAll returns one tree on all rows, as no bootstrap would.
func growAll(x [][]float64, categories []int, y []float64, c Config) *Tree {
	rows := make([]int32, len(x))
	for i := range rows {
		rows[i] = int32(i)
	}
	return newGrower(newTable(x, categories), c).grow(rows, y, random.New(1, 1))
}

func TestTreeByHand(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason     string
		x          [][]float64
		categories []int
		y          []float64
		c          Config
		at         []float64
		want       float64
	}{
		"Step":        {"A step is found exactly.", [][]float64{{0.1}, {0.2}, {0.6}, {0.9}}, nil, []float64{1, 1, 5, 5}, one, []float64{0.15}, 1},
		"StepRight":   {"On both sides.", [][]float64{{0.1}, {0.2}, {0.6}, {0.9}}, nil, []float64{1, 1, 5, 5}, one, []float64{7}, 5},
		"Column":      {"The column that matters is taken.", [][]float64{{0, 0.1}, {1, 0.2}, {0, 0.6}, {1, 0.9}}, nil, []float64{1, 1, 5, 5}, Config{Trees: 1, MinLeaf: 1, MaxDepth: 1, Features: 1}, []float64{1, 0}, 1},
		"MinLeaf":     {"A leaf of two is the mean of two.", [][]float64{{0}, {0.4}, {0.6}, {1}}, nil, []float64{1, 3, 5, 9}, Config{Trees: 1, MinLeaf: 2, Features: 1}, []float64{0.1}, 2},
		"Subset":      {"The first and the third category are alike.", [][]float64{{0.1}, {0.5}, {0.9}}, []int{3}, []float64{4, 8, 4}, Config{Trees: 1, MinLeaf: 1, MaxDepth: 1, Features: 1}, []float64{0.95}, 4},
		"Missing":     {"What is missing may be alone.", [][]float64{{nan}, {0.1}, {0.5}, {0.9}, {nan}}, nil, []float64{9, 1, 1, 1, 9}, Config{Trees: 1, MinLeaf: 1, MaxDepth: 1, Features: 1}, []float64{nan}, 9},
		"NotMissing":  {"Then all numbers are together.", [][]float64{{nan}, {0.1}, {0.5}, {0.9}, {nan}}, nil, []float64{9, 1, 1, 1, 9}, Config{Trees: 1, MinLeaf: 1, MaxDepth: 1, Features: 1}, []float64{44}, 1},
		"MissingLow":  {"Or go with the low.", [][]float64{{nan}, {0.1}, {0.5}, {0.9}}, nil, []float64{1, 1, 9, 9}, one, []float64{nan}, 1},
		"MissingHigh": {"Or with the high.", [][]float64{{nan}, {0.1}, {0.5}, {0.9}}, nil, []float64{9, 1, 1, 9}, Config{Trees: 1, MinLeaf: 1, MaxDepth: 1, Features: 1}, []float64{nan}, 9},
		"MissingKind": {"Or with a category.", [][]float64{{nan}, {0.1}, {0.9}}, []int{2}, []float64{3, 7, 3}, one, []float64{nan}, 3},
		"Same":        {"Equal rows have their mean.", [][]float64{{0.5}, {0.5}}, nil, []float64{2, 4}, one, []float64{0.5}, 3},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := growAll(tc.x, tc.categories, tc.y, tc.c).leaf(tc.at).Mean; math.Abs(got-tc.want) > 1e-12 {
				t.Errorf("%s prediction is %v: want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// drawRow draws a row of a numeric, a categorical and a numeric column that
// may be missing.
func drawRow(rt *rapid.T) []float64 {
	row := []float64{
		rapid.Float64Range(0, 1).Draw(rt, "a"),
		float64(rapid.IntRange(0, 2).Draw(rt, "b"))/3 + 1.0/6,
		float64(rapid.IntRange(0, 9).Draw(rt, "c")) / 10,
	}
	if rapid.Bool().Draw(rt, "missing") {
		row[2] = nan
	}
	return row
}

// TestBestSplit compares the first split of a tree with the best of all that
// there are, by the definition of the sum of squares.
func TestBestSplit(t *testing.T) {
	t.Parallel()
	categories := []int{0, 3, 0}
	rapid.Check(t, func(rt *rapid.T) {
		x := rapid.SliceOfN(rapid.Custom(drawRow), 2, 40).Draw(rt, "x")
		y := make([]float64, len(x))
		for i := range y {
			y[i] = rapid.Float64Range(-3, 3).Draw(rt, "y")
		}
		stump := growAll(x, categories, y, Config{Trees: 1, MinLeaf: 1, MaxDepth: 1, Features: 1})
		root := stump.Nodes[0]
		squares := func(left func(row []float64) bool) float64 {
			var sides [2][]float64
			for i, row := range x {
				side := 0
				if left(row) {
					side = 1
				}
				sides[side] = append(sides[side], y[i])
			}
			return around(sides[0]) + around(sides[1])
		}
		best := math.Inf(1)
		for _, cut := range x {
			for _, gone := range []bool{true, false} {
				for k := range 3 {
					best = min(best, squares(func(row []float64) bool {
						switch {
						case math.IsNaN(row[k]):
							return gone
						case k == 1:
							return row[1] == cut[1]
						}
						return math.IsNaN(cut[k]) || row[k] <= cut[k]
					}))
				}
			}
		}
		got := around(y)
		if !root.Leaf() {
			got = squares(func(row []float64) bool { return stump.left(&root, row[root.Column]) })
		}
		if got > best+1e-9 {
			rt.Fatalf("split leaves %v: want at most %v", got, best)
		}
	})
}

// around returns the sum of squares around the mean.
func around(numbers []float64) float64 {
	mean, sum := 0.0, 0.0
	for _, v := range numbers {
		mean += v / float64(len(numbers))
	}
	for _, v := range numbers {
		sum += (v - mean) * (v - mean)
	}
	return sum
}

// TestDeviation checks the law of total variance on two trees of known leaves.
func TestDeviation(t *testing.T) {
	t.Parallel()
	leaf := func(mean, variance float64) *Tree { return &Tree{Nodes: []Node{{Mean: mean, variance: variance}}} }
	m := &Model{trees: []*Tree{leaf(1, 0.5), leaf(3, 1.5)}, shift: 10, unit: 2}
	// Means 1 and 3 differ by a variance of 1, and the leaves have 1 on average.
	mean, deviation := m.Predict([]float64{0})
	if mean != 10+2*2 || math.Abs(deviation-2*math.Sqrt2) > 1e-12 {
		t.Errorf("Predict = %v ± %v: want 14 ± %v", mean, deviation, 2*math.Sqrt2)
	}
}

// friedman is Friedman's first function (1991) of five columns, of which y has
// a deviation of about 5; further columns do nothing.
func friedman(n, columns int, noise float64, seed uint64) (x [][]float64, y []float64) {
	r := random.New(seed, 0)
	for range n {
		row := make([]float64, columns)
		for k := range row {
			row[k] = r.Float()
		}
		x = append(x, row)
		error := noise * math.Sqrt(-2*math.Log(r.Float())) * math.Cos(2*math.Pi*r.Float())
		y = append(y, 10*math.Sin(math.Pi*row[0]*row[1])+20*(row[2]-0.5)*(row[2]-0.5)+10*row[3]+5*row[4]+error)
	}
	return x, y
}

func TestFriedman(t *testing.T) {
	t.Parallel()
	x, y := friedman(500, 8, 1, 1)
	unseen, truth := friedman(500, 8, 0, 2)
	// Breiman (1996) reports a squared error of about 6.2 for bagged trees
	// learning from 200 rows with this noise.
	for kind, most := range map[Kind]float64{RandomForest: 6, ExtraTrees: 6, GradientBoosting: 6} {
		m := Fit(x, nil, y, DefaultConfig(kind), 1)
		squares := 0.0
		for i, row := range unseen {
			mean, deviation := m.Predict(row)
			squares += (mean - truth[i]) * (mean - truth[i]) / float64(len(unseen))
			if !(deviation >= 0 && deviation < 6) {
				t.Fatalf("kind %d: deviation is %v: want one below that of y", kind, deviation)
			}
		}
		if squares > most {
			t.Errorf("kind %d: mean squared error is %v: want at most %v", kind, squares, most)
		}
		t.Logf("kind %d: mean squared error %.2f", kind, squares)
	}
}

// TestQuantiles checks that boosting knows how noise grows along a column.
func TestQuantiles(t *testing.T) {
	t.Parallel()
	r := random.New(3, 0)
	var x [][]float64
	var y []float64
	for range 2000 {
		u := r.Float()
		x = append(x, []float64{u})
		y = append(y, (1+4*math.Round(u))*math.Sqrt(-2*math.Log(r.Float()))*math.Cos(2*math.Pi*r.Float()))
	}
	m := Fit(x, nil, y, DefaultConfig(GradientBoosting), 1)
	for at, want := range map[float64]float64{0.25: 1, 0.75: 5} {
		mean, deviation := m.Predict([]float64{at})
		if math.Abs(mean) > 0.4*want || math.Abs(deviation-want) > 0.25*want {
			t.Errorf("at %v Predict = %v ± %v: want 0 ± %v", at, mean, deviation, want)
		}
	}
}

// TestBins checks that a column with more values than bins loses little.
func TestBins(t *testing.T) {
	t.Parallel()
	x, y := friedman(3000, 5, 0, 1)
	c := newTable(x, nil).columns[0]
	sizes := make([]int, c.count)
	for i, bin := range c.bins {
		sizes[bin]++
		if v := x[i][0]; v < c.low[bin] || v > c.high[bin] {
			t.Fatalf("%v is in the bin from %v to %v", v, c.low[bin], c.high[bin])
		}
	}
	if c.count > maxBins || slices.Max(sizes) > 2*3000/maxBins {
		t.Errorf("%d bins, the largest of %d rows", c.count, slices.Max(sizes))
	}
	m := Fit(x, nil, y, Config{Trees: 20, MinLeaf: 1, Features: 1}, 1)
	unseen, truth := friedman(300, 5, 0, 2)
	for i, row := range unseen {
		if mean, _ := m.Predict(row); math.Abs(mean-truth[i]) > 6 {
			t.Errorf("Predict(%v) = %v: want about %v", row, mean, truth[i])
		}
	}
}

// TestHostile checks that predictions are numbers whatever the data, are
// within the range of y, and are the same again.
func TestHostile(t *testing.T) {
	t.Parallel()
	special := rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{nan, math.Inf(1), math.Inf(-1), 0, 1, -3, 1e308}))
	value := rapid.OneOf(rapid.Float64Range(-1, 1), rapid.SampledFrom([]float64{nan, math.Inf(1), math.Inf(-1), 1e308, -1e308, 5e-324, 7}))
	rapid.Check(t, func(rt *rapid.T) {
		columns := rapid.IntRange(1, 4).Draw(rt, "columns")
		row := rapid.SliceOfN(special, columns, columns)
		x := rapid.SliceOfN(row, 1, 30).Draw(rt, "x")
		y := rapid.SliceOfN(value, len(x), len(x)).Draw(rt, "y")
		categories := rapid.SliceOfN(rapid.SampledFrom([]int{0, 0, 1, 3, 300}), columns, columns).Draw(rt, "categories")
		c := DefaultConfig(rapid.SampledFrom([]Kind{RandomForest, ExtraTrees, GradientBoosting}).Draw(rt, "kind"))
		c.Trees, c.MinLeaf = 5, rapid.IntRange(1, 4).Draw(rt, "leaf")
		c.Features = rapid.SampledFrom([]float64{1, 0.3}).Draw(rt, "features")
		m, again := Fit(x, categories, y, c, 7), Fit(x, categories, y, c, 7)
		at := row.Draw(rt, "at")
		mean, deviation := m.Predict(at)
		if math.IsNaN(mean+deviation) || math.IsInf(mean, 0) || math.IsInf(deviation, 0) || deviation < 0 {
			rt.Fatalf("Predict = %v ± %v: want numbers", mean, deviation)
		}
		if a, b := again.Predict(at); a != mean || b != deviation {
			rt.Fatalf("Predict = %v ± %v, and again %v ± %v", mean, deviation, a, b)
		}
	})
}

func BenchmarkFit(b *testing.B) {
	for name, n := range map[string]int{"100": 100, "1000": 1000, "10000": 10000} {
		x, y := friedman(n, 20, 1, 1)
		for kind, label := range map[Kind]string{RandomForest: "RF", ExtraTrees: "ET", GradientBoosting: "GBRT"} {
			b.Run(label+"/"+name, func(b *testing.B) {
				for b.Loop() {
					Fit(x, nil, y, DefaultConfig(kind), 1)
				}
			})
		}
	}
}

func BenchmarkPredict(b *testing.B) {
	x, y := friedman(200, 20, 1, 1)
	m := Fit(x, nil, y, DefaultConfig(RandomForest), 1)
	for b.Loop() {
		m.Predict(x[0])
	}
}
