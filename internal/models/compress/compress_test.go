// SPDX-License-Identifier: Apache-2.0

package compress

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/x448/float16"
	"pgregory.net/rapid"

	"diwan.dev/diwan/internal/models/onnx"
)

// tensor makes a weight.
func tensor(name string, values []float32, dims ...int64) *onnx.Tensor {
	return &onnx.Tensor{Name: name, Type: onnx.Float32, Dims: dims, Values: float32s(values...)}
}

// noise are n values.
func noise(n int) []float32 {
	random := rand.New(rand.NewPCG(1, 2))
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(random.NormFloat64())
	}
	return values
}

// model makes a model of nodes between x and y.
func model(opset int64, nodes []*onnx.Node, weights ...*onnx.Tensor) *onnx.Model {
	return &onnx.Model{IRVersion: 8, Opsets: []onnx.Opset{{Domain: "", Version: opset}}, Graph: &onnx.Graph{
		Nodes: nodes, Initializers: weights,
		Inputs:  []*onnx.ValueInfo{onnx.NewValue("x", onnx.Float32, -1, 16)},
		Outputs: []*onnx.ValueInfo{onnx.NewValue("y", onnx.Float32, -1, 16)},
	}}
}

func op(name string, inputs []string, outputs ...string) *onnx.Node {
	return &onnx.Node{Op: name, Inputs: inputs, Outputs: outputs}
}

// read are the bytes of values.
func read(t testing.TB, v onnx.Values) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := v.WriteTo(&b)
	if err != nil || n != v.Size() || n != int64(b.Len()) {
		t.Fatalf("%d bytes were written, %d are there, the size is %d, %v", n, b.Len(), v.Size(), err)
	}
	return b.Bytes()
}

// chunks are values that are written in pieces of a length, which may cut numbers.
type chunks struct {
	onnx.Bytes
	length int
}

func (c chunks) WriteTo(w io.Writer) (int64, error) {
	for piece := range slices.Chunk([]byte(c.Bytes), c.length) {
		if _, err := w.Write(piece); err != nil {
			return 0, err
		}
	}
	return c.Size(), nil
}

func drawTensor(t *rapid.T) (*onnx.Tensor, []float32) {
	dims := rapid.SliceOfN(rapid.Int64Range(1, 5), 1, 4).Draw(t, "dims")
	n := 1
	for _, dim := range dims {
		n *= int(dim)
	}
	values := rapid.SliceOfN(rapid.Float32Range(-1e30, 1e30), n, n).Draw(t, "values")
	w := tensor("w", values, dims...)
	w.Values = chunks{float32s(values...), rapid.IntRange(1, 20).Draw(t, "chunk")}
	return w, values
}

// TestQuantize holds that every value is off by at most half of its scale, whatever the axis.
func TestQuantize(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, values := drawTensor(t)
		axis := rapid.IntRange(-1, len(w.Dims)-1).Draw(t, "axis")
		limit := rapid.SampledFrom([]float32{127, 63}).Draw(t, "limit")
		offset := rapid.SampledFrom([]int32{0, 128}).Draw(t, "offset")
		q, err := quantize(w, axis, limit, offset)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if n, err := q.values.WriteTo(&b); err != nil || n != int64(len(values)) || n != q.values.Size() {
			t.Fatal(n, err)
		}
		for i, value := range values {
			channel := 0
			if axis >= 0 {
				// The index along the axis, found by dividing from the last one on.
				rest := int64(i)
				for d := len(w.Dims) - 1; d >= axis; d-- {
					channel, rest = int(rest%w.Dims[d]), rest/w.Dims[d]
				}
			}
			integer := float64(int8(b.Bytes()[i]))
			if offset != 0 {
				integer = float64(b.Bytes()[i]) - float64(offset)
			}
			scale := float64(q.scales[channel])
			if off := math.Abs(integer*scale - float64(value)); off > scale*0.50001 || math.Abs(integer) > float64(limit) {
				t.Fatalf("value %d, %v, is %v × %v: off by %v", i, value, integer, scale, off)
			}
		}
	})
}

// TestCut holds that the zeroed values are as many as said, and none of them larger than one that is left.
func TestCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, values := drawTensor(t)
		for i := range values {
			if rapid.Bool().Draw(t, "small") {
				values[i] = float32(i%3) - 1 // equal ones, and zeros
			}
		}
		w.Values = float32s(values...)
		sparsity := rapid.Float64Range(0.01, 0.99).Draw(t, "sparsity")
		c, err := cutOf(w, sparsity)
		if err != nil {
			t.Fatal(err)
		}
		pruned := mapped{w.Values, w.Values.Size(), c.apply}
		for range 2 { // each writing is the same
			zeros, largest, smallest := int64(0), float32(0), float32(math.Inf(1))
			err := floats(pruned, func(at int64, piece []float32) error {
				for i, value := range piece {
					was := values[at+int64(i)]
					if value == 0 {
						zeros++
						largest = max(largest, float32(math.Abs(float64(was))))
					} else if value != was {
						t.Errorf("%v became %v", was, value)
					} else {
						smallest = min(smallest, float32(math.Abs(float64(was))))
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			had := int64(0)
			for _, value := range values {
				if value == 0 {
					had++
				}
			}
			if want := max(had, int64(math.Round(sparsity*float64(len(values))))); zeros != want || c.zeros != want || largest > smallest {
				t.Fatalf("%d zeros, %d reported, want %d; zeroed up to %v, left from %v", zeros, c.zeros, want, largest, smallest)
			}
		}
	})
}

func TestFloat16(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, out float32 }{
		{0, 0}, {1, 1}, {-0.1, -0.099975586}, {65504, 65504}, {65519, 65504}, {70000, 65504}, {-1e30, -65504},
		{float32(math.Inf(-1)), float32(math.Inf(-1))}, {1e-9, 0}, {6e-8, 5.9604645e-08}, {2049, 2048}, {2051, 2052},
	} {
		got := float16.Frombits(binary.LittleEndian.Uint16(float16s(nil, 0, []float32{c.in}))).Float32()
		if got != c.out {
			t.Errorf("%v is %v in half precision, not %v", c.in, got, c.out)
		}
	}
	if nan := float16.Frombits(binary.LittleEndian.Uint16(float16s(nil, 0, []float32{float32(math.NaN())}))); !nan.IsNaN() {
		t.Errorf("what is not a number is %v", nan)
	}
}

// TestPure holds that the model that was given stays as it is, and that the result is the same each time.
func TestPure(t *testing.T) {
	t.Parallel()
	m := model(9, []*onnx.Node{
		op("Softmax", []string{"x"}, "s"), op("MatMul", []string{"s", "w"}, "h"), op("Gemm", []string{"h", "w", "b"}, "y"),
	}, tensor("w", noise(256), 16, 16), tensor("b", noise(16), 16))
	before := read(t, wholeModel{m})
	for _, method := range Methods {
		var first []byte
		for range 2 {
			made, _, err := Model(m, method, Options{Sparsity: 0.3})
			if err != nil {
				t.Fatal(err)
			}
			got := read(t, wholeModel{made})
			if first != nil && !bytes.Equal(got, first) {
				t.Errorf("%s makes different models of one", method)
			}
			first = got
			if bytes.Equal(got, before) {
				t.Errorf("%s changes nothing", method)
			}
		}
		if !bytes.Equal(read(t, wholeModel{m}), before) {
			t.Fatalf("%s changes the model that it is given", method)
		}
	}
}

// wholeModel is a model as values.
type wholeModel struct{ *onnx.Model }

func (m wholeModel) Size() int64 { return m.Model.Size() }

// TestKept holds what stays, and that the report says why.
func TestKept(t *testing.T) {
	t.Parallel()
	infinite := noise(256)
	infinite[77] = float32(math.Inf(1))
	overridden := model(13, []*onnx.Node{op("MatMul", []string{"x", "w"}, "y")}, tensor("w", noise(256), 16, 16))
	overridden.Graph.Inputs = append(overridden.Graph.Inputs, onnx.NewValue("w", onnx.Float32, 16, 16))
	for _, c := range []struct {
		name    string
		m       *onnx.Model
		methods []Method
		want    string
	}{
		{"small", model(13, []*onnx.Node{op("MatMul", []string{"x", "w"}, "y")}, tensor("w", noise(16), 16, 1)), []Method{Int8, DynamicInt8, Prune}, "no tensor has as many as 256"},
		{"infinite", model(13, []*onnx.Node{op("MatMul", []string{"x", "w"}, "y")}, tensor("w", infinite, 16, 16)), []Method{Int8, DynamicInt8, Prune}, "infinite"},
		{"operator", model(13, []*onnx.Node{op("CumSum", []string{"w", "x"}, "y")}, tensor("w", noise(256), 16, 16)), Methods, "its operator CumSum"},
		{"input", overridden, []Method{Int8, DynamicInt8, Prune}, `of "w", for one, it is also an input`},
		{"nothing", model(13, []*onnx.Node{op("Relu", []string{"x"}, "y")}), Methods, "the model has none in float32"},
		{"old", model(6, []*onnx.Node{op("MatMul", []string{"x", "w"}, "y")}, tensor("w", noise(256), 16, 16)), []Method{Int8, DynamicInt8, Float16}, "onnx.version_converter"},
		{"changed", model(9, []*onnx.Node{op("MatMul", []string{"x", "w"}, "h"), op("Pad", []string{"h"}, "y")}, tensor("w", noise(256), 16, 16)),
			[]Method{Int8, DynamicInt8}, "(Pad) changed: convert the model"},
	} {
		for _, method := range c.methods {
			_, _, err := Model(c.m, method, Options{Sparsity: 0.5})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s by %s: %v, not %q", c.name, method, err, c.want)
			}
			if nothing := c.name != "old" && c.name != "changed"; errors.Is(err, ErrNothing) != nothing {
				t.Errorf("%s by %s: %v", c.name, method, err)
			}
		}
	}
	m := model(13, []*onnx.Node{op("MatMul", []string{"x", "w"}, "h"), op("CumSum", []string{"v", "h"}, "y")}, tensor("w", noise(512), 16, 32), tensor("v", noise(256), 256))
	for _, method := range Methods {
		made, r, err := Model(m, method, Options{Sparsity: 0.5})
		if err != nil {
			t.Fatal(err)
		}
		want := []Kept{{"v", 256, "its operator CumSum is not one that it is done for"}}
		if r.Tensors != 1 || r.Weights != 512 || r.All != 768 || !slices.Equal(r.Kept, want) || r.Before != m.Size() || r.After != made.Size() {
			t.Errorf("%s: the report is %+v", method, r)
		}
		i := slices.IndexFunc(made.Graph.Initializers, func(t *onnx.Tensor) bool { return t.Name == "v" })
		if i < 0 || !bytes.Equal(read(t, made.Graph.Initializers[i].Values), read(t, m.Graph.Initializers[1].Values)) {
			t.Errorf("%s: v does not stay", method)
		}
		for _, w := range made.Graph.Initializers {
			if method != Prune && w.Name == "w" {
				t.Errorf("%s: w stays", method)
			}
		}
	}
	for _, sparsity := range []float64{0, 1, -1, 2, math.NaN()} {
		if _, _, err := Model(m, Prune, Options{Sparsity: sparsity}); err == nil || !strings.Contains(err.Error(), "sparsity") {
			t.Errorf("a sparsity of %v: %v", sparsity, err)
		}
	}
	if _, _, err := Model(m, "zip", Options{}); err == nil || !strings.Contains(err.Error(), "dynamic-int8") {
		t.Errorf("no method: %v", err)
	}
}

// TestKeptConv wants nothing to be left of a convolution that stays since its kernel has a
// value that is not a number.
func TestKeptConv(t *testing.T) {
	t.Parallel()
	bad := noise(16 * 16 * 3)
	bad[7] = float32(math.NaN())
	m := model(17, []*onnx.Node{op("Conv", []string{"x", "bad", "bias"}, "h"), op("Conv", []string{"h", "good", "bias"}, "y")},
		tensor("bad", bad, 16, 16, 3), tensor("good", noise(16*16*3), 16, 16, 3), tensor("bias", noise(16), 16))
	made, report, err := Model(m, DynamicInt8, Options{})
	if err != nil || report.Tensors != 1 || len(report.Kept) != 1 || report.Kept[0].Name != "bad" {
		t.Fatalf("the report is %+v, %v", report, err)
	}
	used := map[string]bool{}
	for _, n := range made.Graph.Nodes {
		for _, name := range n.Inputs {
			used[name] = true
		}
	}
	for _, w := range made.Graph.Initializers {
		if !used[w.Name] {
			t.Errorf("nothing uses %s", w.Name)
		}
	}
}

// broken are values that cannot be read.
type broken struct{ onnx.Bytes }

func (broken) WriteTo(io.Writer) (int64, error) { return 0, io.ErrUnexpectedEOF }

func TestUnreadable(t *testing.T) {
	t.Parallel()
	w := tensor("w", noise(256), 16, 16)
	w.Values = broken{w.Values.(onnx.Bytes)}
	m := model(13, []*onnx.Node{op("MatMul", []string{"x", "w"}, "y")}, w)
	for _, method := range Methods {
		if _, _, err := Model(m, method, Options{Sparsity: 0.5}); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// FuzzModel compresses anything that is a model: it is refused, or the result is a model again whose nodes
// use only values that there are, each made once.
func FuzzModel(f *testing.F) {
	for _, name := range []string{"mlp", "sklearn"} {
		data, err := os.ReadFile("../signature/testdata/" + name + ".onnx")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	var b bytes.Buffer
	seed := model(9, []*onnx.Node{
		op("Gather", []string{"t", "x"}, "g"), op("Softmax", []string{"g"}, "s"), op("MatMul", []string{"s", "w"}, "h"),
		op("Gemm", []string{"h", "w", "b"}, "i"), op("Conv", []string{"i", "k", "b"}, "y"),
	}, tensor("w", noise(256), 16, 16), tensor("t", noise(256), 16, 16), tensor("k", noise(256), 16, 4, 4), tensor("b", noise(16), 16))
	if _, err := seed.WriteTo(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := onnx.Read(context.Background(), bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		for _, method := range Methods {
			made, _, err := Model(m, method, Options{Sparsity: 0.5})
			if err != nil {
				continue
			}
			var b bytes.Buffer
			if _, err := made.WriteTo(&b); err != nil {
				t.Fatal(err)
			}
			again, err := onnx.Read(context.Background(), bytes.NewReader(b.Bytes()), int64(b.Len()))
			if err != nil {
				t.Fatalf("the result of %s cannot be read: %v", method, err)
			}
			if before, after := wrong(m), wrong(again); before == "" && after != "" {
				t.Errorf("the result of %s: %s", method, after)
			}
		}
	})
}

// wrong says what is wrong with the names of a graph.
func wrong(m *onnx.Model) string {
	has := map[string]bool{"": true}
	for _, v := range m.Graph.Inputs {
		has[v.Name] = true
	}
	for _, t := range m.Graph.Initializers {
		has[t.Name] = true
	}
	for _, n := range m.Graph.Nodes {
		for _, name := range n.Inputs {
			if !has[name] {
				return "nothing makes " + name + " before it is used by " + cmp.Or(n.Name, n.Op)
			}
		}
		for _, name := range n.Outputs {
			if name != "" && has[name] {
				return name + " is made twice"
			}
			has[name] = true
		}
	}
	for _, v := range m.Graph.Outputs {
		if !has[v.Name] {
			return "nothing makes the output " + v.Name
		}
	}
	return ""
}
