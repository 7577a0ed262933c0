// SPDX-License-Identifier: Apache-2.0

package optimize_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"diwan.dev/diwan/optimize"
)

func mustEvolution(t *testing.T, space *optimize.Space, seed uint64, c optimize.EvolutionConfig) optimize.Sampler {
	t.Helper()
	s, err := optimize.NewEvolution(space, seed, c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestEvolutionChild checks that each point after the first population differs
// in one parameter from one of the newest trials, and from none older.
func TestEvolutionChild(t *testing.T) {
	t.Parallel()
	const population = 10
	var parameters []optimize.Parameter
	for i := range 6 {
		parameters = append(parameters, optimize.Categorical(fmt.Sprint("c", i), "a", "b", "c", "d", "e"))
	}
	parameters = append(parameters, optimize.Double("x", 0, 1), optimize.Int("n", 0, 9))
	space := mustSpace(t, parameters...)
	h := optimize.NewHistory(space)
	s := mustEvolution(t, space, 1, optimize.EvolutionConfig{Population: population, Sample: 3, Index: 3})
	explore(t, h, s, 100, 1, 1, func(p optimize.Point) optimize.Result { return optimize.Values(p.Float("x")) })
	for i := population; i < h.Len(); i++ {
		child := h.Trial(i).Point.Assignments()
		fewest := len(child)
		for k := i - population; k < i; k++ {
			different := 0
			for j, a := range h.Trial(k).Point.Assignments() {
				if a.Value != child[j].Value {
					different++
				}
			}
			fewest = min(fewest, different)
		}
		if fewest != 1 {
			t.Errorf("suggestion %d differs from each of the newest trials in %d parameters or more: want 1 from its parent", i, fewest)
		}
	}
}

// TestEvolutionFinds compares with random search on architectures: a network of
// up to eight layers, the operations of which suit each other or not.
func TestEvolutionFinds(t *testing.T) {
	t.Parallel()
	operations := []string{"conv3", "conv5", "pool", "skip", "sep3", "sep5"}
	parameters := []optimize.Parameter{optimize.Int("layers", 1, 8)}
	for i := range 8 {
		p := optimize.Categorical(fmt.Sprint("op", i), operations...)
		if i > 0 {
			var deep []string
			for n := i + 1; n <= 8; n++ {
				deep = append(deep, fmt.Sprint(n))
			}
			p = p.When("layers", deep...)
		}
		parameters = append(parameters, p)
	}
	loss := func(p optimize.Point) optimize.Result {
		total, before := 20.0, 0
		for i := range p.Int("layers") {
			op := slices.Index(operations, p.Text(fmt.Sprint("op", i)))
			total -= 3 * math.Cos(float64(op*(i+1))) * math.Cos(float64(op-before))
			before = op
		}
		return optimize.Values(total)
	}
	for _, pending := range []int{1, 10} {
		better := 0
		for seed := range uint64(10) {
			space := mustSpace(t, parameters...)
			c := optimize.DefaultEvolutionConfig()
			c.MaxTrials = 300
			evolved, random := optimize.NewHistory(space), optimize.NewHistory(space)
			explore(t, evolved, mustEvolution(t, space, seed, c), 300, pending, seed, loss)
			explore(t, random, optimize.NewRandom(seed), 900, pending, seed, loss)
			a, _ := evolved.Best()
			b, _ := random.Best()
			if a.Value() < b.Value() {
				better++
			}
		}
		if better < 8 {
			t.Errorf("%d pending: %d of 10 searches are better than random search of thrice as many trials: want at least 8", pending, better)
		}
	}
}

func TestEvolutionConfig(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]optimize.EvolutionConfig{
		"Population": {Population: 1},
		"Sample":     {Population: 10, Sample: 11},
		"Index":      {Index: math.NaN()},
	} {
		if _, err := optimize.NewEvolution(unitCube(t, 1), 1, c); err == nil {
			t.Errorf("%s: no error for %+v", name, c)
		}
	}
}
