// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

const caffeNetwork = `name: "LeNet" # a comment
layer { name: "data" type: "Input" top: "data" input_param { shape: { dim: 64 dim: 1 dim: [28, 28] } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 10 weight_filler { type: 'xavier' } } }
layer { name: "relu" type: "ReLU" bottom: "ip" top: "ip" }
layer < name: "prob" type: "Softmax"; bottom: "ip", top: "prob" >
`

// caffeModel is a network of one layer with a blob of n numbers.
func caffeModel(n int, dims ...int64) []byte {
	var packed []byte
	for _, d := range dims {
		packed = append(packed, proto{}.varint(1, uint64(d))...)
	}
	blob := proto{}.bytes(5, make([]byte, 4*n)).bytes(7, packed)
	layer := proto{}.text(1, "ip").text(2, "InnerProduct").text(3, "data").text(4, "ip").bytes(7, blob)
	return proto{}.text(1, "LeNet").bytes(100, layer)
}

func TestCaffe(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"net.caffemodel": {Data: caffeModel(6, 2, 3)}, "net.prototxt": {Data: []byte(caffeNetwork)}, "train.prototxt": {}}
	sig, err := Read(t.Context(), files, ".", Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSpace(fmt.Sprintln(sig.Inputs, sig.Outputs, *sig.Parameters, len(sig.Files), sig.Operators))
	if want := "[{data float32 [64 1 28 28] []}] [{prob float32 ? []}] 6 2 map[InnerProduct:1 Input:1 ReLU:1 Softmax:1]"; text != want {
		t.Errorf("it was read as %s, want %s", text, want)
	}
	old := `input: "data" input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8 layers { name: "c" type: CONVOLUTION bottom: "data" top: "c" }`
	sig, err = Read(t.Context(), one("old.prototxt", []byte(old)), "old.prototxt", Options{})
	if err != nil || fmt.Sprint(sig.Inputs, sig.Outputs) != "[{data float32 [1 3 8 8] []}] [{c float32 ? []}]" {
		t.Errorf("a network of the old form: %v, %v", sig, err)
	}
}

func TestHostileCaffe(t *testing.T) {
	t.Parallel()
	text := func(s string) fstest.MapFS { return one("m.prototxt", []byte(s)) }
	model := func(data []byte) fstest.MapFS { return one("m.caffemodel", data) }
	refuse(t, []hostile{
		{name: "depth", files: text(strings.Repeat("a{", 1000)), limit: "Depth"},
		{name: "depth of lists", files: text("a:" + strings.Repeat("[", 1000)), limit: "Depth"},
		{name: "unclosed", files: text("layer {"), want: "middle of a message"},
		{name: "unclosed string", files: text(`name: "a`), want: "no end"},
		{name: "no value", files: text("name"), want: "middle of a field"},
		{name: "no colon", files: text("name x"), want: "where a colon"},
		{name: "sign", files: text("name: @"), want: "belongs to no word"},
		{name: "empty", files: text("# nothing"), want: "no layers"},
		{name: "zeros", files: text("\x00\x00"), want: "belongs to no word"},
		{name: "long string", files: text(`name: "` + strings.Repeat("a", 2<<20)), want: "more than 1048576 bytes"},
		{name: "dimension", files: text(`input: "x" input_shape { dim: -5 }`), want: "a dimension is"},
		{name: "no layers", files: model(proto{}.text(1, "x")), want: "no layers"},
		{name: "blob", files: model(caffeModel(5, 2, 3)), want: "shape [2 3] has 5 numbers"},
		{name: "negative", files: model(caffeModel(5, -2)), want: "no number of elements"},
		{name: "overflow", files: model(caffeModel(5, 1<<40, 1<<40)), want: "63 bits"},
		{name: "truncated", files: model(caffeModel(6, 2, 3)[:20]), want: "truncated"},
	})
}

func FuzzCaffe(f *testing.F) {
	f.Add(caffeModel(6, 2, 3))
	fuzzFormat(f, Caffe, "m.caffemodel")
}

func FuzzPrototxt(f *testing.F) {
	f.Add([]byte(caffeNetwork))
	fuzzFormat(f, Caffe, "m.prototxt")
}
