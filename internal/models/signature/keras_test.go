// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"archive/zip"
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func kerasZip(t testing.TB, config string) fstest.MapFS {
	t.Helper()
	return one("m.keras", zipOf(t, zip.Deflate, "metadata.json", `{"keras_version":"3.15.1"}`, "config.json", config))
}

func TestHostileKeras(t *testing.T) {
	t.Parallel()
	h5, err := os.ReadFile("testdata/sequential.h5")
	if err != nil {
		t.Fatal(err)
	}
	changed := func(change func([]byte)) fstest.MapFS {
		data := bytes.Clone(h5)
		change(data)
		return one("m.h5", data)
	}
	refuse(t, []hostile{
		{name: "config", files: kerasZip(t, `{`), want: `member "config.json"`},
		{name: "depth", files: kerasZip(t, strings.Repeat(`{"config":`, 1000)), limit: "Depth"},
		{name: "dimension", files: kerasZip(t, `{"config":{"layers":[{"class_name":"InputLayer","config":{"batch_shape":[null,"x"],"name":"a"}}]}}`), want: "dimension 1"},
		{name: "weights", files: one("m.keras", zipOf(t, zip.Store, "metadata.json", "{}", "config.json", "{}", "model.weights.h5", "x")), want: "no superblock"},
		{name: "superblock", files: changed(func(d []byte) { d[8] = 9 }), want: "superblock version 9"},
		{name: "widths", files: changed(func(d []byte) { d[13] = 4 }), want: "offsets of 4"},
		{name: "root", files: changed(func(d []byte) { d[71] = 0x7f }), want: "outside of the file"},
		{name: "root of 64 bits", files: changed(func(d []byte) { copy(d[64:], "\xff\xff\xff\xff\xff\xff\xff\xff") }), want: "outside of the file"},
		{name: "root elsewhere", files: changed(func(d []byte) { d[64] = 0 }), want: "no object header"},
		{name: "truncated", files: one("m.h5", h5[:3000]), want: "m.h5"},
		{name: "short", files: one("m.h5", h5[:20]), want: "truncated"},
		{name: "tree", files: changed(func(d []byte) { copy(d[0x88:], "TRUE") }), want: "no node of a group"},
		{name: "heap", files: changed(func(d []byte) { copy(d[bytes.Index(d, []byte("HEAP")):], "HOAP") }), want: "no heap of names"},
		{name: "heap of texts", files: changed(func(d []byte) { copy(d[bytes.Index(d, []byte("GCOL")):], "GCAL") }), want: "no heap of texts"},
	})
}

// TestHDF5InACircle reads a group that is its own member.
func TestHDF5InACircle(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/sequential.h5")
	if err != nil {
		t.Fatal(err)
	}
	node := bytes.Index(data, []byte("SNOD"))
	copy(data[node+8+8:], data[64:72]) // the first member's header is the root's
	sig, err := Read(t.Context(), one("m.h5", data), "m.h5", Options{})
	if err != nil || *sig.Parameters != 0 {
		t.Errorf("%v, %v", sig, err)
	}
}

func TestKerasCode(t *testing.T) {
	t.Parallel()
	config := `{"module":"keras","class_name":"Functional","registered_name":null,"config":{"name":"f",
		"input_layers":{"b":["b",0,0],"a":["a",0,0]},"output_layers":[["out",0,0]],"layers":[
		{"module":"keras.layers","class_name":"InputLayer","name":"a","config":{"batch_shape":[null,2],"dtype":"int32","name":"a"}},
		{"module":"keras.layers","class_name":"InputLayer","name":"b","config":{"batch_shape":[8,null],"dtype":"float32","name":"b"}},
		{"module":"keras.layers","class_name":"Lambda","name":"l","config":{"function":{"class_name":"__lambda__","config":{"code":"4wE="}}}},
		{"module":"mine.layers","class_name":"Evil","registered_name":"mine>Evil","name":"out","config":{}}]}}`
	sig, err := Read(t.Context(), kerasZip(t, config), "m.keras", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"__lambda__", "keras.layers.Lambda"}; !slices.Equal(sig.Unsafe, want) {
		t.Errorf("unsafe is %q, want %q", sig.Unsafe, want)
	}
	if !slices.Contains(sig.Callables, "mine.layers.Evil") {
		t.Errorf("callables are %q", sig.Callables)
	}
	if len(sig.Inputs) != 2 || sig.Inputs[0].Shape.String() != "[-1 2]" || sig.Inputs[1].Shape.String() != "[8 -1]" || sig.Outputs[0].Name != "out" {
		t.Errorf("it was read as %s", describe(t, sig))
	}
}

func FuzzKeras(f *testing.F)   { fuzzFormat(f, Keras, "m.keras", "*.keras") }
func FuzzKerasH5(f *testing.F) { fuzzFormat(f, KerasH5, "m.h5", "*.h5") }

func FuzzKerasConfig(f *testing.F)  { fuzzMember(f, Keras, "functional.keras", "config.json") }
func FuzzKerasWeights(f *testing.F) { fuzzMember(f, Keras, "functional.keras", "model.weights.h5") }
