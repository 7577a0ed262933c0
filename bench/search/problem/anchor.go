// SPDX-License-Identifier: Apache-2.0

package problem

import (
	"fmt"
	"math"
)

// Anchors returns sixteen classic functions of 2 to 10 dimensions. Those that
// are symmetric around the centre are moved by 12 % of their range, in turn up
// and down, so that a search gains nothing by trying the centre. There is one
// instance: what other libraries reach on these is on record.
func Anchors() []*Problem {
	problems := []*Problem{
		anchor("branin", []Parameter{double("x0", -5, 10), double("x1", 0, 15)}, 0.39788735772973816, []float64{math.Pi, 2.275}, branin),
		anchor("beale", box(2, -4.5, 4.5), 0, []float64{3, 0.5}, beale),
		anchor("camel", []Parameter{double("x0", -3, 3), double("x1", -2, 2)}, -1.0316284534898774, []float64{0.08984201, -0.71265640}, camel),
		anchor("hartmann6", box(6, 0, 1), -3.322368011415515, []float64{0.20168951, 0.15001069, 0.47687398, 0.27533243, 0.31165162, 0.65730053}, hartmann6),
	}
	for _, d := range []int{5, 10} {
		problems = append(problems,
			shiftedAnchor("sphere", d, 5, func(z []float64) float64 {
				return sum(z, func(_ int, v float64) float64 { return v * v })
			}),
			shiftedAnchor("rastrigin", d, 5.12, ripples),
			shiftedAnchor("ellipsoid", d, 5, func(z []float64) float64 { return weightedSquares(z, 1e6) }),
			shiftedAnchor("ackley", d, 32.768, ackley),
			anchor(fmt.Sprint("rosenbrock", d), box(d, -5, 10), 0, filled(d, 1), banana),
			anchor(fmt.Sprint("styblinski", d), box(d, -5, 5), -39.16616570377142*float64(d), filled(d, -2.903534027771177), styblinski),
		)
	}
	return problems
}

func anchor(name string, parameters []Parameter, optimum float64, solution []float64, f func([]float64) float64) *Problem {
	return &Problem{
		Name: "anchor/" + name, Family: "anchor", Parameters: parameters, Optimum: optimum, Solution: solution,
		Evaluate: exact(func(p Point) float64 { return f(p.At) }),
	}
}

// shiftedAnchor is a function with the optimum 0 at 0, moved, on [-r, r]^d.
func shiftedAnchor(name string, d int, r float64, f func([]float64) float64) *Problem {
	shift := filled(d, 0.12*2*r)
	for i := 1; i < d; i += 2 {
		shift[i] = -shift[i]
	}
	return anchor(fmt.Sprint(name, d), box(d, -r, r), 0, shift, func(x []float64) float64 { return f(minus(x, shift)) })
}

func double(name string, low, high float64) Parameter {
	return Parameter{Name: name, Kind: Double, Low: low, High: high}
}

func filled(d int, v float64) []float64 {
	x := make([]float64, d)
	for i := range x {
		x[i] = v
	}
	return x
}

func ackley(z []float64) float64 {
	d := float64(len(z))
	squares := sum(z, func(_ int, v float64) float64 { return v * v })
	waves := sum(z, func(_ int, v float64) float64 { return math.Cos(2 * math.Pi * v) })
	return 20 - 20*math.Exp(-0.2*math.Sqrt(squares/d)) + math.E - math.Exp(waves/d)
}

func styblinski(x []float64) float64 {
	return sum(x, func(_ int, v float64) float64 { return (v*v*v*v - 16*v*v + 5*v) / 2 })
}

func branin(x []float64) float64 {
	bend := x[1] - 5.1/(4*math.Pi*math.Pi)*x[0]*x[0] + 5/math.Pi*x[0] - 6
	return bend*bend + 10*(1-1/(8*math.Pi))*math.Cos(x[0]) + 10
}

func beale(x []float64) float64 {
	total := 0.0
	for k, c := range []float64{1.5, 2.25, 2.625} {
		v := c - x[0] + x[0]*math.Pow(x[1], float64(k+1))
		total += v * v
	}
	return total
}

func camel(x []float64) float64 {
	a, b := x[0]*x[0], x[1]*x[1]
	return (4-2.1*a+a*a/3)*a + x[0]*x[1] + (4*b-4)*b
}

func hartmann6(x []float64) float64 {
	heights := []float64{1, 1.2, 3, 3.2}
	widths := [][]float64{
		{10, 3, 17, 3.5, 1.7, 8},
		{0.05, 10, 17, 0.1, 8, 14},
		{3, 3.5, 1.7, 10, 17, 8},
		{17, 8, 0.05, 10, 0.1, 14},
	}
	centres := [][]float64{
		{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
		{0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
		{0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
		{0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381},
	}
	total := 0.0
	for k, height := range heights {
		total -= height * math.Exp(-sum(x, func(j int, v float64) float64 {
			return widths[k][j] * (v - centres[k][j]) * (v - centres[k][j])
		}))
	}
	return total
}
