// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestHostileONNX(t *testing.T) {
	t.Parallel()
	file := func(data []byte) fstest.MapFS { return one("m.onnx", data) }
	tensor := func(p proto) fstest.MapFS { return file(onnxModel(proto{}.bytes(5, p))) }
	external := func(location string, offset, length int64, dims ...int64) fstest.MapFS {
		return fstest.MapFS{
			"dir/m.onnx": {Data: onnxModel(proto{}.bytes(5, onnxExternal(location, offset, length, dims...)))},
			"dir/m.data": {Data: make([]byte, 8)},
			"secret":     {Data: make([]byte, 8)},
		}
	}
	deep := proto{}.text(4, "If")
	for range 300 {
		deep = proto{}.text(4, "If").bytes(5, proto{}.bytes(6, proto{}.bytes(1, deep)))
	}
	types := proto{}.bytes(1, proto{}.varint(1, 1))
	for range 300 {
		types = proto{}.bytes(4, proto{}.bytes(1, types))
	}
	var dims proto
	for range 2000 {
		dims = dims.varint(1, 1)
	}
	refuse(t, []hostile{
		{name: "empty graph", files: file(proto{}.varint(1, 8)), want: "no ONNX graph"},
		{name: "two graphs", files: file(proto{}.bytes(7, nil).bytes(7, nil)), want: "two graphs"},
		{name: "truncated", files: file(onnxModel(proto{}.bytes(5, onnxTensor("w", 40, 10)))[:30]), want: "truncated or damaged"},
		{name: "group", files: file([]byte{0x0b, 0x0c}), want: "wire type"},
		{name: "tag", files: file([]byte{0x00}), want: "no protobuf"},
		{name: "varint", files: file([]byte("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")), want: "no protobuf"},
		{name: "length", files: file([]byte("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")), want: "claims 18446744073709551615 bytes"},
		{name: "depth", files: file(onnxModel(proto{}.bytes(1, deep))), limit: "Depth", want: "levels"},
		{name: "depth of types", files: file(onnxModel(proto{}.bytes(11, proto{}.text(1, "x").bytes(2, types)))), limit: "Depth", want: "levels"},
		{name: "negative dimension", files: tensor(onnxTensor("w", 4, -1)), want: "dimension of -1"},
		{name: "overflow", files: tensor(onnxTensor("w", 4, 1<<40, 1<<40)), want: "63 bits"},
		{name: "overflow by width", files: tensor(onnxTensor("w", 4, 1<<62)), want: "larger than any file"},
		{name: "wrong size", files: tensor(onnxTensor("w", 4, 2)), want: "has 8 bytes, but 4 are stored"},
		{name: "no data", files: tensor(proto{}.varint(1, 5).varint(2, 1).text(8, "w")), want: "but 0 are stored"},
		{name: "rank", files: tensor(dims), want: "1000 dimensions"},
		{name: "type", files: tensor(proto{}.varint(1, 1).varint(2, 99)), want: "unknown type 99"},
		{name: "name is a number", files: tensor(proto{}.varint(8, 5)), want: "no text"},
		{name: "number is text", files: file(proto{}.text(1, "a")), want: "no number"},
		{name: "climbs out", read: "dir/m.onnx", files: external("../secret", 0, 8, 2), want: `"../secret", which leads out`},
		{name: "climbs out later", read: "dir/m.onnx", files: external("a/../../secret", 0, 8, 2), want: "leads out"},
		{name: "absolute", read: "dir/m.onnx", files: external("/etc/passwd", 0, 8, 2), want: "leads out"},
		{name: "backslash", read: "dir/m.onnx", files: external(`..\secret`, 0, 8, 2), want: "leads out"},
		{name: "folder", read: "dir/m.onnx", files: external(".", 0, 8, 2), want: "leads out"},
		{name: "no name", read: "dir/m.onnx", files: external("", 0, 8, 2), want: "not named"},
		{name: "missing", read: "dir/m.onnx", files: external("n.data", 0, 8, 2), want: "n.data"},
		{name: "beyond the end", read: "dir/m.onnx", files: external("m.data", 4, 8, 2), want: "beyond the end of dir/m.data"},
		{name: "beyond 63 bits", read: "dir/m.onnx", files: external("m.data", 1<<63-1, 8, 2), want: "beyond the end"},
		{name: "offset", read: "dir/m.onnx", files: external("m.data", -4, 8, 2), want: `offset of its data is "-4"`},
		{name: "other length", read: "dir/m.onnx", files: external("m.data", 0, 4, 2), want: "has 8 bytes, its entry says 4"},
	})
}

func TestONNX(t *testing.T) {
	t.Parallel()
	// As exporters wrote before IR version 4: weights are inputs, too; with a graph in a
	// node, and an input of each other kind of type.
	inner := proto{}.bytes(1, proto{}.text(4, "Relu")).bytes(5, onnxTensor("v", 8, 2))
	graph := proto{}.
		bytes(1, proto{}.text(4, "If").bytes(5, proto{}.bytes(6, inner))).
		bytes(1, proto{}.text(4, "Scaler").text(7, "ai.onnx.ml")).
		bytes(5, onnxTensor("w", 24, 2, 3)).
		bytes(5, proto{}.varint(1, 2).varint(2, 1).text(8, "unpacked").fixed32(4, 0).fixed32(4, 0)).
		bytes(11, onnxValue("x", "batch", 2, nil)).
		bytes(11, onnxValue("w", 2, 3)).
		bytes(11, proto{}.text(1, "o").bytes(2, proto{}.bytes(9, proto{}.bytes(1, proto{}.bytes(1, proto{}.varint(1, 7)))))).
		bytes(11, proto{}.text(1, "rank").bytes(2, proto{}.bytes(1, proto{}.varint(1, 11)))).
		bytes(12, proto{}.text(1, "m").bytes(2, proto{}.bytes(4, proto{}.bytes(1, proto{}.bytes(5, proto{}.varint(1, 7).bytes(2, proto{}.bytes(1, proto{}.varint(1, 1)))))))).
		bytes(12, onnxValue("scalar"))
	model := append(onnxModel(graph), proto{}.bytes(14, proto{}.text(1, "author").text(2, "me"))...)
	sig, err := Read(t.Context(), one("m", model), "m", Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tensor := range slices.Concat(sig.Inputs, sig.Outputs) {
		got = append(got, tensor.Name+" "+tensor.Type+" "+tensor.Shape.String())
	}
	want := []string{"x float32 [batch 2 -1]", "o optional(int64) ?", "rank float64 ?", "m seq(map(int64, float32)) ?", "scalar float32 []"}
	if !slices.Equal(got, want) {
		t.Errorf("inputs and outputs are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if *sig.Parameters != 10 || sig.Operators["If"] != 1 || sig.Operators["Relu"] != 1 || sig.Operators["ai.onnx.ml.Scaler"] != 1 || sig.Metadata["author"] != "me" {
		t.Errorf("it was read as %s", describe(t, sig))
	}
}

func FuzzONNX(f *testing.F) {
	f.Add(onnxModel(proto{}.bytes(5, onnxTensor("w", 24, 2, 3)).bytes(11, onnxValue("x", "batch", 2))))
	f.Add(onnxModel(proto{}.bytes(5, onnxExternal("m.onnx", 0, 8, 2))))
	fuzzFormat(f, ONNX, "m.onnx", "*.onnx")
}
