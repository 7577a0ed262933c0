// SPDX-License-Identifier: Apache-2.0

package problem

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// branches has three branches, two of which branch again; each leaf is a
// function of its own parameters.
func branches(numbers *rand.Rand) *Problem {
	parameters := []Parameter{
		oneOf("family", "a", "b", "c"),
		oneOf("a_kind", "bowl", "ripples").when("family", "a"),
		double("a_x", -5, 5).when("family", "a"),
		double("a_y", -5, 5).when("family", "a"),
		double("b_x", -2, 2).when("family", "b"),
		double("b_y", -1, 3).when("family", "b"),
		oneOf("c_kind", "log", "steps").when("family", "c"),
		double("c_log", 1e-5, 1e5).log().when("c_kind", "log"),
		integer("c_steps", 0, 50).when("c_kind", "steps"),
	}
	at := targets(parameters, numbers)
	costs := shuffledCosts(numbers, 5, 2)
	value := func(p Point) float64 {
		switch p.choice("family") {
		case 0:
			x, y := p.number("a_x")-at["a_x"], p.number("a_y")-at["a_y"]
			if p.choice("a_kind") == 0 {
				return costs[0] + 0.1*(x*x+y*y)
			}
			return costs[1] + 0.1*ripples([]float64{x, y})/2
		case 1:
			x, y := p.number("b_x"), p.number("b_y")
			return costs[2] + 0.02*banana([]float64{x, y})
		}
		if p.choice("c_kind") == 0 {
			off := p.off("c_log", at)
			return costs[3] + 12*off*off
		}
		return costs[4] + 8*math.Abs(p.off("c_steps", at))
	}
	nan := math.NaN()
	leaves := [][]float64{
		{0, 0, at["a_x"], at["a_y"], nan, nan, nan, nan, nan},
		{0, 1, at["a_x"], at["a_y"], nan, nan, nan, nan, nan},
		{1, nan, nan, nan, 1, 1, nan, nan, nan},
		{2, nan, nan, nan, nan, nan, 0, at["c_log"], nan},
		{2, nan, nan, nan, nan, nan, 1, nan, at["c_steps"]},
	}
	return (&Problem{Parameters: parameters}).solved(leaves[int(cheapest(costs))], value)
}

// categories has six parameters of four choices without an order; each choice
// has a cost, and so have pairs of neighbors. All 4096 points are tried to
// find the best.
func categories(numbers *rand.Rand) *Problem {
	const n, k = 6, 4
	var parameters []Parameter
	var single [n][k]float64
	var pair [n][k][k]float64
	for i := range n {
		parameters = append(parameters, oneOf(fmt.Sprint("c", i), "p", "q", "r", "s"))
		for a := range k {
			single[i][a] = numbers.Float64()
			for b := range k {
				pair[i][a][b] = numbers.Float64()
			}
		}
	}
	value := func(p Point) (total float64) {
		for i := range n {
			a, b := int(p.At[i]), int(p.At[(i+1)%n])
			total += single[i][a] + 0.7*pair[i][a][b]
		}
		return total
	}
	p := &Problem{Parameters: parameters}
	var solution []float64
	for rank := range 4096 {
		point := make([]float64, n)
		for i := range point {
			point[i] = float64(rank >> (2 * i) & 3)
		}
		if solution == nil || value(p.Point(point)) < value(p.Point(solution)) {
			solution = point
		}
	}
	return p.solved(solution, value)
}

// integers is an ill-conditioned bowl over integers of which two interact.
func integers(numbers *rand.Rand) *Problem {
	parameters := []Parameter{
		integer("n0", 0, 10), integer("n1", -50, 50), integer("n2", 1, 1000).log(),
		integer("n3", 0, 1), integer("n4", 1, 6), integer("n5", 0, 1000), integer("n6", 1, 64).log(),
	}
	at := targets(parameters, numbers)
	value := func(p Point) (total float64) {
		previous := 0.0
		for i, q := range parameters {
			off := q.off(p.At[i], at[q.Name])
			total += math.Pow(10, float64(i%3)) * (off + 0.3*previous) * (off + 0.3*previous)
			previous = off
		}
		return total
	}
	solution := make([]float64, len(parameters))
	for i, q := range parameters {
		solution[i] = at[q.Name]
	}
	return (&Problem{Parameters: parameters}).solved(solution, value)
}

// mixedAckley is Ackley's function of doubles, integers and categories:
// each category stands for a number in no order.
func mixedAckley(numbers *rand.Rand) *Problem {
	var parameters []Parameter
	for i := range 3 {
		parameters = append(parameters, double(fmt.Sprint("x", i), -8, 8))
	}
	for i := range 2 {
		parameters = append(parameters, integer(fmt.Sprint("n", i), -8, 8))
	}
	for i := range 2 {
		parameters = append(parameters, oneOf(fmt.Sprint("c", i), "p", "q", "r", "s", "t"))
	}
	at := targets(parameters, numbers)
	costs := [2][]float64{shuffledCosts(numbers, 5, 4), shuffledCosts(numbers, 5, 4)}
	value := func(p Point) float64 {
		z := make([]float64, len(parameters))
		for i, q := range parameters {
			if z[i] = p.At[i] - at[q.Name]; q.Kind == Categorical {
				z[i] = costs[i-5][int(p.At[i])]
			}
		}
		return ackley(z)
	}
	solution := make([]float64, len(parameters))
	for i, q := range parameters {
		solution[i] = at[q.Name]
	}
	solution[5], solution[6] = cheapest(costs[0]), cheapest(costs[1])
	return (&Problem{Parameters: parameters}).solved(solution, value)
}

// pipeline is a chain of steps each of which is on or off and then has a
// strength; a step helps or harms, and strengths of neighbors interact.
func pipeline(numbers *rand.Rand) *Problem {
	const steps = 5
	var parameters []Parameter
	var gain [steps]float64
	for i := range steps {
		name := fmt.Sprint("step", i)
		parameters = append(parameters, oneOf(name, "off", "on"), double(name+"_strength", 1e-3, 1e3).log().when(name, "on"))
		gain[i] = numbers.Float64() - 0.4
	}
	at := targets(parameters, numbers)
	value := func(p Point) float64 {
		total, previous := 2.0, 0.0
		for i := range steps {
			if p.At[2*i] == 0 {
				previous = 0
				continue
			}
			name := parameters[2*i+1].Name
			off := p.off(name, at)
			total += 1.5*(off+0.4*previous)*(off+0.4*previous) - gain[i]
			previous = off
		}
		return total
	}
	solution := make([]float64, len(parameters))
	for i := range steps {
		solution[2*i+1] = math.NaN()
		if gain[i] > 0 {
			solution[2*i], solution[2*i+1] = 1, at[parameters[2*i+1].Name]
		}
	}
	return (&Problem{Parameters: parameters}).solved(solution, value)
}
