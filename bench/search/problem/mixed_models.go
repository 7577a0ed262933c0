// SPDX-License-Identifier: Apache-2.0

package problem

import (
	"math"
	"math/rand/v2"
	"strconv"
)

// svm is shaped like the error of a support vector machine: each kernel has a
// valley in the cost and its own parameters, and one kernel the deepest.
func svm(numbers *rand.Rand) *Problem {
	parameters := []Parameter{
		oneOf("kernel", "linear", "poly", "rbf", "sigmoid"),
		double("C", 1e-4, 1e4).log(),
		double("gamma", 1e-6, 1e2).log().when("kernel", "poly", "rbf", "sigmoid"),
		integer("degree", 2, 6).when("kernel", "poly"),
		double("coef0", -1, 1).when("kernel", "poly", "sigmoid"),
		oneOf("shrinking", "no", "yes"),
	}
	at, kernels, shrinking := targets(parameters, numbers), shuffledCosts(numbers, 4, 0.3), shuffledCosts(numbers, 2, 0.02)
	at["rest"] = parameters[1].between(numbers) // the cost's valley where there is no gamma
	value := func(p Point) float64 {
		v := kernels[p.choice("kernel")] + shrinking[p.choice("shrinking")]
		if p.choice("kernel") == 0 {
			off := parameters[1].off(p.number("C"), at["rest"])
			return v + off*off + 0.05
		}
		cost, gamma := p.off("C", at), p.off("gamma", at)
		along, across := cost+gamma, cost-gamma // a large cost wants a small gamma
		v += 0.15*across*across + 1.5*along*along
		if i := p.index("degree"); !math.IsNaN(p.At[i]) {
			v += 0.3 * math.Abs(p.off("degree", at))
		}
		if i := p.index("coef0"); !math.IsNaN(p.At[i]) {
			off := p.off("coef0", at)
			v += 0.4 * off * off
		}
		return v
	}
	return best(&Problem{Parameters: parameters}, value, 4, func(kernel int) []float64 {
		point := []float64{float64(kernel), at["C"], at["gamma"], at["degree"], at["coef0"], cheapest(shrinking)}
		switch kernel {
		case 0:
			point[1], point[2], point[3], point[4] = at["rest"], math.NaN(), math.NaN(), math.NaN()
		case 2:
			point[3], point[4] = math.NaN(), math.NaN()
		case 3:
			point[3] = math.NaN()
		}
		return point
	})
}

// best settles the solution of a problem that has one candidate a branch.
func best(p *Problem, f func(Point) float64, branches int, candidate func(branch int) []float64) *Problem {
	solution := candidate(0)
	for branch := range branches {
		if c := candidate(branch); f(p.Point(c)) < f(p.Point(solution)) {
			solution = c
		}
	}
	return p.solved(solution, f)
}

// boosting is shaped like the loss of boosted trees: learning rate and number
// of trees trade off, depth and leaf size interact, some parameters hardly matter.
func boosting(numbers *rand.Rand) *Problem {
	parameters := []Parameter{
		double("learning_rate", 1e-3, 1).log(),
		integer("trees", 10, 2000).log(),
		integer("depth", 1, 15),
		integer("leaf", 1, 100).log(),
		double("subsample", 0.3, 1),
		double("columns", 0.2, 1),
		double("lambda", 1e-6, 100).log(),
		oneOf("growth", "depth", "leaf", "symmetric"),
	}
	at, growth := targets(parameters, numbers), shuffledCosts(numbers, 3, 0.05)
	value := func(p Point) float64 {
		rate, trees := p.off("learning_rate", at), p.off("trees", at)
		depth, leaf := p.off("depth", at), p.off("leaf", at)
		steps, balance := rate+trees, rate-trees
		v := 3*steps*steps + 0.3*balance*balance
		if steps > 0 { // overfitting is worse than underfitting
			v += steps
		}
		v += 1.2*depth*depth + 0.5*(leaf-0.6*depth)*(leaf-0.6*depth)
		rows, columns, lambda := p.off("subsample", at), p.off("columns", at), p.off("lambda", at)
		v += 0.2*rows*rows + 0.1*columns*columns + 0.05*lambda*lambda + growth[p.choice("growth")]
		return math.Sqrt(v + 1e-4)
	}
	solution := make([]float64, len(parameters))
	for i, p := range parameters {
		solution[i] = at[p.Name]
	}
	solution[7] = cheapest(growth)
	return (&Problem{Parameters: parameters}).solved(solution, value)
}

// network is shaped like the loss of a neural network: the number of layers
// decides which widths there are, the optimizer which momenta.
func network(numbers *rand.Rand) *Problem {
	parameters := []Parameter{integer("layers", 1, 4)}
	for layer := 1; layer <= 4; layer++ {
		var deeper []string
		for n := layer; n <= 4; n++ {
			deeper = append(deeper, strconv.Itoa(n))
		}
		parameters = append(parameters, integer("width"+strconv.Itoa(layer), 8, 1024).log().when("layers", deeper...))
	}
	parameters = append(parameters,
		oneOf("optimizer", "sgd", "adam", "lamb"),
		double("momentum", 0, 0.99).when("optimizer", "sgd"),
		double("beta2", 0.8, 0.9999).when("optimizer", "adam", "lamb"),
		double("learning_rate", 1e-6, 1).log(),
		double("dropout", 0, 0.8),
		double("weight_decay", 1e-8, 1e-1).log(),
		oneOf("activation", "relu", "gelu", "tanh", "silu"),
	)
	at, optimizers, activations := targets(parameters, numbers), shuffledCosts(numbers, 3, 0.15), shuffledCosts(numbers, 4, 0.1)
	rates := []float64{parameters[8].between(numbers), parameters[8].between(numbers), parameters[8].between(numbers)}
	depths := shuffledCosts(numbers, 4, 0.2)
	value := func(p Point) float64 {
		layers := int(p.number("layers"))
		v := optimizers[p.choice("optimizer")] + activations[p.choice("activation")] + depths[layers-1]
		for layer := 1; layer <= layers; layer++ {
			off := p.off("width"+strconv.Itoa(layer), at)
			v += 0.5 * off * off / float64(layers)
		}
		momentum := "momentum"
		if p.choice("optimizer") > 0 {
			momentum = "beta2"
		}
		rate := parameters[8].off(p.number("learning_rate"), rates[p.choice("optimizer")])
		m, drop, decay := p.off(momentum, at), p.off("dropout", at), p.off("weight_decay", at)
		v += 4*rate*rate + 0.3*(m+rate)*(m+rate) + 0.4*drop*drop + 0.2*(decay+0.3*drop)*(decay+0.3*drop)
		return math.Min(v, 1.5+0.05*v) // a training that diverged is as bad as another
	}
	layers, optimizer := cheapest(depths)+1, cheapest(optimizers)
	solution := []float64{layers}
	for layer := 1.0; layer <= 4; layer++ {
		width := at["width"+strconv.Itoa(int(layer))]
		if layer > layers {
			width = math.NaN()
		}
		solution = append(solution, width)
	}
	momentum, beta2 := math.NaN(), at["beta2"]
	if optimizer == 0 {
		momentum, beta2 = at["momentum"], math.NaN()
	}
	solution = append(solution, optimizer, momentum, beta2, rates[int(optimizer)], at["dropout"], at["weight_decay"], cheapest(activations))
	return (&Problem{Parameters: parameters}).solved(solution, value)
}
