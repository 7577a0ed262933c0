// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"diwan.dev/diwan/bench/search/problem"
)

// The digits are 8×8 pixels of 17 greys each, in ten classes.
const (
	pixels  = 64
	classes = 10
)

// digit is one row of the data.
type digit struct {
	x     [pixels]float64 // from 0 to 1
	class int
}

// dataset is the digits, shared by all who read them.
type dataset struct{ train, validation, test []digit }

// Digits returns the family of networks with one hidden layer that learn the
// digits of the quickstart by stochastic gradient descent with momentum. What
// is observed is the mean cross-entropy on 400 digits, and what counts that on
// 997 others; they learn from the 400 that are left.
func Digits() (Family, error) {
	rows, err := readDigits()
	if err != nil {
		return Family{}, err
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	data := dataset{rows[:400], rows[400:800], rows[800:]}
	return Family{
		Name: "digits",
		Parameters: []problem.Parameter{
			{Name: "rate", Kind: problem.Double, Low: 1e-4, High: 3, Log: true},
			{Name: "momentum", Kind: problem.Double, Low: 0, High: 0.99},
			{Name: "batch", Kind: problem.Int, Low: 4, High: 128, Log: true},
			{Name: "decay", Kind: problem.Double, Low: 1e-6, High: 1, Log: true},
			{Name: "hidden", Kind: problem.Int, Low: 4, High: 32, Log: true},
			{Name: "spread", Kind: problem.Double, Low: 1e-3, High: 3, Log: true},
			{Name: "cooling", Kind: problem.Double, Low: 0.85, High: 1},
		},
		Begin: func(at []float64, seed uint64) Curve {
			return newNetwork(&data, at, seed^hash(at))
		},
	}, nil
}

// readDigits finds the data in the repository, from wherever in it the program
// runs.
func readDigits() ([]digit, error) {
	path := filepath.Join("examples", "quickstart", "digits.csv")
	for range 6 {
		if _, err := os.Stat(path); err == nil {
			break
		}
		path = filepath.Join("..", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read digits: want to run within the repository: %w", err)
	}
	defer file.Close()
	records, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("cannot read digits: %w", err)
	}
	rows := make([]digit, len(records))
	for i, record := range records {
		if len(record) != pixels+1 {
			return nil, fmt.Errorf("cannot read digits: row %d has %d fields, want %d", i+1, len(record), pixels+1)
		}
		for k, text := range record {
			v, err := strconv.Atoi(text)
			if err != nil || v < 0 || v > 16 {
				return nil, fmt.Errorf("cannot read digits: row %d has %q: want a number from 0 to 16", i+1, text)
			}
			if k < pixels {
				rows[i].x[k] = float64(v) / 16
			} else {
				rows[i].class = min(v, classes-1)
			}
		}
	}
	return rows, nil
}

// network is a network and the state of its training.
type network struct {
	data                           *dataset
	rate, momentum, decay, cooling float64
	batch, hidden                  int
	numbers                        *rand.Rand
	order                          []int
	weights, velocity, gradient    []float64 // of the first layer with its biases, then of the second
	epochs                         int
	activation, output, hiddens    []float64
}

func newNetwork(data *dataset, at []float64, seed uint64) *network {
	n := &network{
		data: data, rate: at[0], momentum: at[1], batch: int(at[2]), decay: at[3], hidden: int(at[4]), cooling: at[6],
		numbers: rand.New(rand.NewPCG(seed, 2)),
	}
	size := n.hidden*(pixels+1) + classes*(n.hidden+1)
	n.weights, n.velocity, n.gradient = make([]float64, size), make([]float64, size), make([]float64, size)
	n.activation, n.output = make([]float64, n.hidden), make([]float64, classes)
	n.hiddens = make([]float64, n.hidden)
	for i := range n.weights {
		n.weights[i] = at[5] * n.numbers.NormFloat64()
	}
	n.order = n.numbers.Perm(len(data.train))
	return n
}

func (n *network) Train(epoch int) {
	for ; n.epochs < epoch; n.epochs++ {
		n.epoch()
	}
}

func (n *network) Observed() float64 { return n.loss(n.data.validation) }

func (n *network) Actual() float64 { return n.loss(n.data.test) }

// epoch goes through the data once.
func (n *network) epoch() {
	n.numbers.Shuffle(len(n.order), func(i, j int) { n.order[i], n.order[j] = n.order[j], n.order[i] })
	for from := 0; from < len(n.order); from += n.batch {
		rows := n.order[from:min(from+n.batch, len(n.order))]
		for i := range n.gradient {
			n.gradient[i] = n.decay * n.weights[i] / 100
		}
		for _, i := range rows {
			n.backward(&n.data.train[i], 1/float64(len(rows)))
		}
		for i, g := range n.gradient {
			n.velocity[i] = n.momentum*n.velocity[i] - n.rate*g
			n.weights[i] += n.velocity[i]
		}
	}
	n.rate *= n.cooling
}

// layers returns the weights of both layers, each row with its bias last.
func (n *network) layers(w []float64) (first, second []float64) {
	at := n.hidden * (pixels + 1)
	return w[:at], w[at:]
}

// forward computes the probabilities of the classes.
func (n *network) forward(d *digit) {
	first, second := n.layers(n.weights)
	for h := range n.hidden {
		w := first[h*(pixels+1) : (h+1)*(pixels+1)]
		sum := w[pixels]
		for i, x := range d.x {
			sum += w[i] * x
		}
		n.activation[h] = math.Max(sum, 0)
	}
	total, most := 0.0, math.Inf(-1)
	for c := range classes {
		w := second[c*(n.hidden+1) : (c+1)*(n.hidden+1)]
		sum := w[n.hidden]
		for h, a := range n.activation {
			sum += w[h] * a
		}
		n.output[c], most = sum, math.Max(most, sum)
	}
	for c := range n.output {
		n.output[c] = math.Exp(n.output[c] - most)
		total += n.output[c]
	}
	for c := range n.output {
		n.output[c] /= total
	}
}

// backward adds the gradient of one digit's cross-entropy.
func (n *network) backward(d *digit, weight float64) {
	n.forward(d)
	_, second := n.layers(n.weights)
	firstGradient, secondGradient := n.layers(n.gradient)
	clear(n.hiddens)
	for c, p := range n.output {
		if c == d.class {
			p--
		}
		p *= weight
		w, g := second[c*(n.hidden+1):(c+1)*(n.hidden+1)], secondGradient[c*(n.hidden+1):(c+1)*(n.hidden+1)]
		for h, a := range n.activation {
			g[h] += p * a
			n.hiddens[h] += p * w[h]
		}
		g[n.hidden] += p
	}
	for h, slope := range n.hiddens {
		if n.activation[h] == 0 {
			continue
		}
		g := firstGradient[h*(pixels+1) : (h+1)*(pixels+1)]
		for i, x := range d.x {
			g[i] += slope * x
		}
		g[pixels] += slope
	}
}

// loss returns the mean cross-entropy on some digits.
func (n *network) loss(digits []digit) float64 {
	sum := 0.0
	for i := range digits {
		n.forward(&digits[i])
		sum -= math.Log(math.Max(n.output[digits[i].class], 1e-12)) / float64(len(digits))
	}
	return bounded(sum)
}
