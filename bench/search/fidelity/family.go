// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"math"
	"math/rand/v2"

	"diwan.dev/diwan/bench/search/problem"
)

// Epochs is how long a trial lasts that is trained to the end.
const Epochs = 81

// Family is a set of learning curves.
type Family struct {
	Name       string
	Parameters []problem.Parameter
	// Begin begins to train a configuration, whose coordinates are in the
	// order of the parameters. The same configuration and seed have the same
	// curve.
	Begin func(at []float64, seed uint64) Curve
}

// Curve is a configuration that is trained.
type Curve interface {
	// Train goes on to some number of epochs, from 1, which never falls.
	Train(epoch int)
	// Observed returns the loss that a search sees then.
	Observed() float64
	// Actual returns how great it really is.
	Actual() float64
}

// worst is what counts for a loss that is greater or no number, as when
// training diverges.
const worst = 10

func bounded(loss float64) float64 {
	if !(loss < worst) {
		return worst
	}
	return loss
}

// Families returns the families of an instance: those with numbers of their own.
func Families(instance uint64) ([]Family, error) {
	digits, err := Digits()
	if err != nil {
		return nil, err
	}
	return []Family{
		Synthetic(Traits{Name: "aligned", Noise: 0.002}, instance),
		Synthetic(Traits{Name: "crossing", Crossing: 1, Noise: 0.005}, instance),
		Synthetic(Traits{Name: "noisy", Crossing: 0.5, Noise: 0.05}, instance),
		digits,
	}, nil
}

// Traits tell synthetic families apart.
type Traits struct {
	Name string
	// Crossing is how much better, at the end, configurations are that learn
	// slowly: with 0 the order of two curves hardly changes.
	Crossing float64
	// Noise is the deviation of what is observed at each epoch.
	Noise float64
}

// dimensions is the number of parameters of a synthetic family, all from 0 to 1.
const dimensions = 6

// Synthetic returns curves that fall to a level by a power of the time. The
// level grows with the square of the distance from an optimum, along axes of
// different importance that are turned in pairs; the first parameter also says
// how fast a configuration learns.
func Synthetic(t Traits, instance uint64) Family {
	numbers := rand.New(rand.NewPCG(instance, 0x5eed))
	f := Family{Name: t.Name}
	var optimum, importance [dimensions]float64
	for i := range dimensions {
		f.Parameters = append(f.Parameters, problem.Parameter{Name: string(rune('a' + i)), Kind: problem.Double, High: 1})
		optimum[i] = 0.2 + 0.6*numbers.Float64()
		importance[i] = math.Pow(4, -float64(i)/2)
	}
	angle := math.Pi * numbers.Float64()
	f.Begin = func(at []float64, seed uint64) Curve {
		level := 0.0
		for i := 0; i < dimensions; i += 2 {
			a, b := at[i]-optimum[i], at[i+1]-optimum[i+1]
			a, b = a*math.Cos(angle)-b*math.Sin(angle), a*math.Sin(angle)+b*math.Cos(angle)
			level += importance[i]*a*a + importance[i+1]*b*b
		}
		slow := at[0]
		return &synthetic{
			level: 0.1 + level + 0.15*t.Crossing*(1-slow),
			scale: math.Exp(2.5 * t.Crossing * (slow - 0.5)),
			power: 1 + (0.05+0.15*t.Crossing)*math.Sin(7*at[1]),
			noise: t.Noise, seed: seed ^ hash(at),
		}
	}
	return f
}

type synthetic struct {
	level, scale, power, noise float64
	seed                       uint64
	epoch                      int
}

func (c *synthetic) Train(epoch int) { c.epoch = epoch }

func (c *synthetic) Observed() float64 {
	return c.Actual() + c.noise*rand.New(rand.NewPCG(c.seed, uint64(c.epoch))).NormFloat64()
}

func (c *synthetic) Actual() float64 {
	return c.level + math.Pow(1+float64(c.epoch)/c.scale, -c.power)
}

// hash makes a seed of coordinates.
func hash(at []float64) (h uint64) {
	for _, x := range at {
		h = (h ^ math.Float64bits(x)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}
