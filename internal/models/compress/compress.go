// SPDX-License-Identifier: Apache-2.0

// Package compress makes ONNX models smaller: by weights or whole products in 8 bits, by
// computing in half precision, and by zeroing the smallest weights. Each method makes a new
// model of a model, without executing it and without data.
//
// New weights are computed when the model is written, from those of the model that was given:
// that one must stay open until then. At most one tensor is in memory.
package compress

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"diwan.dev/diwan/internal/models/onnx"
)

// Method is a way to compress.
type Method string

// The methods.
const (
	// Int8 keeps weights in 8 bits, a scale per channel, and computes in float32.
	Int8 Method = "int8"
	// DynamicInt8 multiplies in 8 bits; the scale of activations is found anew for each input.
	DynamicInt8 Method = "dynamic-int8"
	// Float16 keeps weights in 16 bits and computes with them; inputs and outputs stay float32.
	Float16 Method = "fp16"
	// Prune zeroes the weights that are smallest by magnitude.
	Prune Method = "prune"
)

// Methods are all methods.
var Methods = []Method{Int8, DynamicInt8, Float16, Prune}

// Options of a compression.
type Options struct {
	// Sparsity is the part of each tensor's weights that Prune zeroes, between 0 and 1.
	Sparsity float64
	// ReduceRange has DynamicInt8 keep weights in 7 bits: on x86 processors without VNNI,
	// sums of two products of 8 bits overflow 16 bits and are saturated.
	ReduceRange bool
}

// Report says what a compression did.
type Report struct {
	Method Method `json:"method"`
	// Tensors and Weights were compressed. All are the weights that the model has in float32.
	Tensors int   `json:"tensors"`
	Weights int64 `json:"weights"`
	All     int64 `json:"allWeights"`
	// Zeros are the compressed weights that are zero after Prune.
	Zeros int64 `json:"zeros,omitempty"`
	// Clamped are weights beyond ±65504, which float16 does not have.
	Clamped int64 `json:"clamped,omitempty"`
	// Before and After are the sizes of the models, in bytes.
	Before int64 `json:"bytesBefore"`
	After  int64 `json:"bytesAfter"`
	// Kept are larger tensors that stay as they are.
	Kept []Kept `json:"kept,omitempty"`
}

// Kept is a tensor that was not compressed.
type Kept struct {
	Name    string `json:"name"`
	Weights int64  `json:"weights"`
	Reason  string `json:"reason"`
}

// ErrNothing says that no weight of a model could be compressed.
var ErrNothing = errors.New("no weight can be compressed")

// Model compresses a model, which stays as it is. It fails with [ErrNothing] if the result would be the same.
func Model(m *onnx.Model, method Method, o Options) (*onnx.Model, *Report, error) {
	r, err := start(m, method)
	if err != nil {
		return nil, nil, err
	}
	switch method {
	case Int8:
		err = r.weightOnly()
	case DynamicInt8:
		err = r.dynamic(o.ReduceRange)
	case Float16:
		err = r.half()
	case Prune:
		err = r.prune(o.Sparsity)
	default:
		return nil, nil, fmt.Errorf("cannot compress by %q: must be one of %v", method, Methods)
	}
	if err != nil {
		return nil, nil, err
	}
	return r.finish()
}

const (
	// minWeights is the size of the smallest tensor that is compressed: below, the nodes
	// and scales would take what is saved.
	minWeights = 256
	// minPerScale is how many weights a scale must be for.
	minPerScale = 8
	// opsetNeeded is the first with DequantizeLinear by an axis.
	opsetNeeded = 13
)

// rewrite is a model that is being changed.
type rewrite struct {
	*onnx.Model
	report *Report
	// taken are all names of values.
	taken map[string]bool
	// weights are the constant initializers in float32.
	weights map[string]*onnx.Tensor
	uses    map[string][]use
	// fixed are names that must stay: those of outputs, and those that graphs inside of nodes use.
	fixed map[string]bool
	// reasons say of a weight why it stays.
	reasons map[string]string
	done    map[string]bool
}

// use is an input of a node.
type use struct {
	node  *onnx.Node
	input int
}

func start(m *onnx.Model, method Method) (*rewrite, error) {
	r := &rewrite{
		Model: m.Clone(), report: &Report{Method: method, Before: m.Size()},
		taken: map[string]bool{}, weights: map[string]*onnx.Tensor{}, uses: map[string][]use{}, fixed: map[string]bool{},
		reasons: map[string]string{}, done: map[string]bool{},
	}
	m.Graph.Names(func(name string) { r.taken[name] = true })
	r.lift()
	inputs := map[string]bool{}
	if r.IRVersion < 4 {
		// Until then weights had to be among the inputs as well.
		constant := map[string]bool{}
		for _, t := range r.Graph.Initializers {
			constant[t.Name] = true
		}
		r.Graph.Inputs = slices.DeleteFunc(r.Graph.Inputs, func(v *onnx.ValueInfo) bool { return constant[v.Name] })
		r.IRVersion = 7
	}
	for _, v := range r.Graph.Inputs {
		inputs[v.Name] = true
	}
	for _, t := range r.Graph.Initializers {
		if t.Type != onnx.Float32 || t.Values == nil {
			continue
		}
		r.report.All += t.Elements()
		if inputs[t.Name] {
			r.reasons[t.Name] = "it is also an input of the model"
			continue
		}
		r.weights[t.Name] = t
	}
	for _, v := range r.Graph.Outputs {
		r.fixed[v.Name] = true
	}
	for _, n := range r.Graph.Nodes {
		n.Inner(func(name string) { r.fixed[name] = true })
	}
	r.count()
	return r, nil
}

// count finds what uses each value.
func (r *rewrite) count() {
	clear(r.uses)
	for _, n := range r.Graph.Nodes {
		for i, name := range n.Inputs {
			r.uses[name] = append(r.uses[name], use{n, i})
		}
	}
}

// lift makes initializers of larger constants that are nodes.
func (r *rewrite) lift() {
	r.Graph.Nodes = slices.DeleteFunc(r.Graph.Nodes, func(n *onnx.Node) bool {
		a := n.Attribute("value")
		if !n.Is("Constant") || len(n.Outputs) != 1 || a == nil || a.Tensor == nil || a.Tensor.Values == nil || a.Tensor.Elements() < minWeights {
			return false
		}
		t := *a.Tensor
		t.Name = n.Outputs[0]
		r.Graph.Initializers = append(r.Graph.Initializers, &t)
		return true
	})
}

// name makes a name that no value has.
func (r *rewrite) name(base, suffix string) string {
	name := base + "/" + suffix
	for i := 2; r.taken[name]; i++ {
		name = fmt.Sprintf("%s/%s_%d", base, suffix, i)
	}
	r.taken[name] = true
	return name
}

// constant adds an initializer.
func (r *rewrite) constant(name string, kind onnx.DataType, values onnx.Values, dims ...int64) string {
	r.Graph.Initializers = append(r.Graph.Initializers, &onnx.Tensor{Name: name, Type: kind, Dims: dims, Values: values})
	return name
}

// compressed notes that a weight was compressed.
func (r *rewrite) compressed(t *onnx.Tensor) {
	if !r.done[t.Name] {
		r.done[t.Name] = true
		r.report.Tensors++
		r.report.Weights += t.Elements()
	}
}

// clean removes initializers that nothing uses any more, and what is said of values that are gone.
func (r *rewrite) clean() {
	used := map[string]bool{}
	for name := range r.fixed {
		used[name] = true
	}
	for _, n := range r.Graph.Nodes {
		for _, name := range slices.Concat(n.Inputs, n.Outputs) {
			used[name] = true
		}
	}
	gone := func(name string) bool { return r.done[name] && !used[name] }
	r.Graph.Initializers = slices.DeleteFunc(r.Graph.Initializers, func(t *onnx.Tensor) bool { return gone(t.Name) })
	r.Graph.ValueInfos = slices.DeleteFunc(r.Graph.ValueInfos, func(v *onnx.ValueInfo) bool { return !used[v.Name] })
}

func (r *rewrite) finish() (*onnx.Model, *Report, error) {
	for _, t := range r.Graph.Initializers {
		if t.Type != onnx.Float32 || t.Values == nil || r.done[t.Name] || t.Elements() < minWeights {
			continue
		}
		if reason := r.reasons[t.Name]; reason != "" {
			r.report.Kept = append(r.report.Kept, Kept{t.Name, t.Elements(), reason})
		}
	}
	if r.report.Tensors == 0 {
		err := fmt.Errorf("%w by %s", ErrNothing, r.report.Method)
		switch {
		case len(r.report.Kept) > 0:
			k := r.report.Kept[0]
			err = fmt.Errorf("%w: of %q, for one, %s", err, k.Name, k.Reason)
		case r.report.All == 0:
			err = fmt.Errorf("%w: the model has none in float32", err)
		default:
			err = fmt.Errorf("%w: no tensor has as many as %d", err, minWeights)
		}
		return nil, nil, err
	}
	r.clean()
	r.report.After = r.Size()
	return r.Model, r.report, nil
}

// axisOf is the axis of a weight whose entries lead to separate outputs, by the operator that uses it.
// ok is false if the operator is not one that multiplies.
func axisOf(u use, rank int) (axis int, ok bool) {
	n := u.node
	switch {
	case n.Is("MatMul") && u.input == 1 && rank >= 2:
		return rank - 1, true
	case n.Is("MatMul") && u.input == 0 && rank >= 2:
		return rank - 2, true
	case n.Is("Gemm") && u.input == 1 && rank == 2:
		return 1 - int(n.Int("transB", 0)&1), true
	case n.Is("Gemm") && u.input == 0 && rank == 2:
		return int(n.Int("transA", 0) & 1), true
	case n.Is("Conv") && u.input == 1 && rank >= 3:
		return 0, true
	case n.Is("ConvTranspose") && u.input == 1 && rank >= 3:
		return 1, true
	case (n.Is("LSTM") || n.Is("GRU") || n.Is("RNN")) && (u.input == 1 || u.input == 2) && rank == 3:
		return 1, true
	}
	return 0, false
}

// matrix says whether a weight is one that is multiplied with, and by which axis; if not, why it stays.
func (r *rewrite) matrix(t *onnx.Tensor) (axis int, ok bool) {
	if t.Elements() < minWeights {
		return 0, false
	}
	reason := "nothing uses it"
	for _, u := range r.uses[t.Name] {
		if axis, ok := axisOf(u, len(t.Dims)); ok {
			return axis, true
		}
		reason = "its operator " + u.node.Op + " is not one that it is done for"
	}
	r.reasons[t.Name] = reason
	return 0, false
}

// finite says whether a value is one that can be scaled.
func finite(f float32) bool { return !math.IsInf(float64(f), 0) && !math.IsNaN(float64(f)) }
