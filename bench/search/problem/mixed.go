// SPDX-License-Identifier: Apache-2.0

package problem

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Mixed returns functions over spaces as users have them: integers,
// categories, logarithms and parameters that exist under conditions. The
// instance decides where the optima are.
func Mixed(instance int) []*Problem {
	makers := []struct {
		name string
		make func(numbers *rand.Rand) *Problem
	}{
		{"svm", svm},
		{"boosting", boosting},
		{"network", network},
		{"branches", branches},
		{"categories", categories},
		{"integers", integers},
		{"ackley", mixedAckley},
		{"pipeline", pipeline},
	}
	problems := make([]*Problem, len(makers))
	for i, m := range makers {
		p := m.make(generator("mixed/"+m.name, instance))
		p.Name, p.Family = fmt.Sprintf("mixed/%s/i%d", m.name, instance), "mixed"
		problems[i] = p
	}
	return problems
}

func (p Parameter) log() Parameter {
	p.Log = true
	return p
}

func (p Parameter) when(parent string, values ...string) Parameter {
	p.Parent, p.Values = parent, values
	return p
}

func integer(name string, low, high float64) Parameter {
	return Parameter{Name: name, Kind: Int, Low: low, High: high}
}

func oneOf(name string, choices ...string) Parameter {
	return Parameter{Name: name, Kind: Categorical, Choices: choices}
}

// between draws a target for a parameter away from its bounds, in the unit in
// which it is searched, as a value.
func (p Parameter) between(numbers *rand.Rand) float64 {
	return p.quantile(0.1 + 0.8*numbers.Float64())
}

// off is the distance of a value from a target as a part of the range, in
// logarithms where the parameter has them.
func (p Parameter) off(v, target float64) float64 {
	if p.Log {
		return math.Log(v/target) / math.Log(p.High/p.Low)
	}
	return (v - target) / (p.High - p.Low)
}

// targets are values for the numbers among some parameters, by name.
func targets(parameters []Parameter, numbers *rand.Rand) map[string]float64 {
	at := map[string]float64{}
	for _, p := range parameters {
		if p.Kind != Categorical {
			at[p.Name] = p.between(numbers)
		}
	}
	return at
}

// off returns how far a number of the point is from its target.
func (p Point) off(name string, targets map[string]float64) float64 {
	return p.parameters[p.index(name)].off(p.number(name), targets[name])
}

// solved fills in the optimum from a solution.
func (p *Problem) solved(solution []float64, f func(Point) float64) *Problem {
	p.Solution, p.Evaluate = solution, exact(f)
	p.Optimum = f(p.Point(solution))
	return p
}

// shuffledCosts returns the cost of each of n choices: 0 for one of them, and
// rising in even steps to most for the others, in random order.
func shuffledCosts(numbers *rand.Rand, n int, most float64) []float64 {
	costs := make([]float64, n)
	for rank, choice := range numbers.Perm(n) {
		costs[choice] = most * float64(rank) / float64(max(n-1, 1))
	}
	return costs
}

// cheapest returns the index of the least cost.
func cheapest(costs []float64) float64 {
	for i, c := range costs {
		if c == 0 {
			return float64(i)
		}
	}
	return math.NaN()
}
