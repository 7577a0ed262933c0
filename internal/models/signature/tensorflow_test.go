// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// tensorInfoProto is an entry of SignatureDef.inputs.
func tensorInfoProto(name string, dims ...int64) proto {
	var shape proto
	for _, d := range dims {
		shape = shape.bytes(2, proto{}.varint(1, uint64(d)))
	}
	return proto{}.text(1, name).bytes(2, proto{}.varint(2, 1).bytes(3, shape))
}

// savedModel is a saved_model.pb with one function.
func savedModel(name string, infos ...proto) []byte {
	var def proto
	for _, info := range infos {
		def = def.bytes(1, info)
	}
	return proto{}.varint(1, 1).bytes(2, proto{}.bytes(5, proto{}.text(1, name).bytes(2, def)))
}

// table is an index of variables with one block of one entry.
func table(key string, value []byte) []byte {
	block := func(key string, value []byte) []byte {
		data := binary.AppendUvarint([]byte{0}, uint64(len(key)))
		data = binary.AppendUvarint(data, uint64(len(value)))
		data = append(append(data, key...), value...)
		return append(data, 0, 0, 0, 0, 1, 0, 0, 0)
	}
	data := block(key, value)
	at := len(data)
	file := append(data, make([]byte, blockTrailer)...)
	index := block(key, binary.AppendUvarint([]byte{0}, uint64(at)))
	start := len(file)
	file = append(append(file, index...), make([]byte, blockTrailer)...)
	footer := binary.AppendUvarint([]byte{0, 0}, uint64(start))
	footer = binary.AppendUvarint(footer, uint64(len(index)))
	footer = append(footer, make([]byte, 40-len(footer))...)
	return append(file, little.AppendUint64(footer, tableMagic)...)
}

func TestHostileTensorFlow(t *testing.T) {
	t.Parallel()
	model := func(pb, index []byte) fstest.MapFS {
		files := fstest.MapFS{"saved_model.pb": {Data: pb}}
		if index != nil {
			files["variables/variables.index"] = &fstest.MapFile{Data: index}
		}
		return files
	}
	good := savedModel("f", tensorInfoProto("x", -1, 4))
	deep := proto{}
	for range 300 {
		deep = proto{}.bytes(2, deep)
	}
	shape := func(dims ...int64) []byte {
		var s proto
		for _, d := range dims {
			s = s.bytes(2, proto{}.varint(1, uint64(d)))
		}
		return proto{}.varint(1, 1).bytes(2, s)
	}
	broken := func(change func([]byte)) []byte {
		data := table("w", shape(2))
		change(data)
		return data
	}
	refuse(t, []hostile{
		{name: "empty", read: ".", files: model(nil, nil), want: "no graph"},
		{name: "truncated", read: ".", files: model(good[:len(good)-3], nil), want: "truncated"},
		{name: "no index", read: ".", files: model(good, []byte("x")), want: "fewer than"},
		{name: "other index", read: ".", files: model(good, make([]byte, 100)), want: "no index of variables"},
		{name: "negative variable", read: ".", files: model(good, table("w", shape(-7))), want: "no number of elements"},
		{name: "overflow", read: ".", files: model(good, table("w", shape(1<<40, 1<<40))), want: "63 bits"},
		{name: "block", read: ".", files: model(good, broken(func(d []byte) { d[len(d)-tableFooter+2] = 0x7f })), want: "outside of the file"},
		{name: "entry", read: ".", files: model(good, broken(func(d []byte) { d[0] = 9 })), want: "damaged"},
		{name: "restarts", read: ".", files: model(good, broken(func(d []byte) { d[len(table("w", shape(2)))-tableFooter-blockTrailer-2] = 0xff })), want: "restarts"},
		{name: "index is a folder", read: ".", files: fstest.MapFS{"saved_model.pb": {Data: good}, "variables/variables.index/x": {}}, want: "folder"},
		{name: "no operator", files: one("m.graphdef", proto{}.bytes(1, proto{}.text(1, "x"))), want: "no operator"},
		{name: "no nodes", files: one("m.graphdef", proto{}.bytes(4, nil)), want: "no nodes"},
		{name: "constant", files: one("m.graphdef", graphConst(1<<40, 1<<40)), want: "63 bits"},
		{name: "name is a number", files: one("m.graphdef", proto{}.bytes(1, proto{}.varint(1, 7))), want: "no text"},
		{name: "deep", files: one("m.graphdef", proto{}.bytes(1, proto{}.text(1, "x").text(2, "y").bytes(5, deep)[:300])), want: "truncated"},
	})
}

// graphConst is a graph of one constant of float32.
func graphConst(dims ...int64) []byte {
	var shape proto
	for _, d := range dims {
		shape = shape.bytes(2, proto{}.varint(1, uint64(d)))
	}
	value := proto{}.text(1, "value").bytes(2, proto{}.bytes(8, proto{}.varint(1, 1).bytes(2, shape)))
	return proto{}.bytes(1, proto{}.text(1, "w").text(2, "Const").bytes(5, value))
}

func TestGraphDefIsKnownByItsFields(t *testing.T) {
	t.Parallel()
	sig, err := Read(t.Context(), one("frozen.bin", graphConst(2, 3)), "frozen.bin", Options{})
	if err != nil || sig.Format != GraphDef || *sig.Parameters != 6 {
		t.Errorf("%v, %v", sig, err)
	}
}

func FuzzSavedModel(f *testing.F) {
	f.Add(savedModel("f", tensorInfoProto("x", -1, 4)))
	fuzzFormat(f, SavedModel, "saved_model.pb", "savedmodel/saved_model.pb")
}

func FuzzGraphDef(f *testing.F) {
	f.Add(graphConst(2, 3))
	fuzzFormat(f, GraphDef, "m.pb", "frozen.pb")
}

func FuzzVariables(f *testing.F) {
	f.Add(table("w", []byte{8, 1}))
	index, err := os.ReadFile("testdata/savedmodel/variables/variables.index")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(index)
	model := savedModel("f", tensorInfoProto("x", -1, 4))
	f.Fuzz(func(t *testing.T, data []byte) {
		files := fstest.MapFS{"saved_model.pb": {Data: model}, "variables/variables.index": {Data: data}}
		if _, err := Read(t.Context(), files, ".", Options{Limits: fuzzLimits}); err != nil {
			wellFormed(t, err)
			if !strings.Contains(err.Error(), "variables.index") {
				t.Errorf("the error %q is about another file", err)
			}
		}
	})
}
