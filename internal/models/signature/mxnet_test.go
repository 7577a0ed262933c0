// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// mxnetFile is a file of one array of float32 with n numbers.
func mxnetFile(name string, n int, dims ...uint64) []byte {
	b := (&ggufBuilder{}).u64(0x112).u64(0).u64(1).u32(mxnetV2).u32(0).u32(uint32(len(dims)))
	for _, d := range dims {
		b.u64(d)
	}
	b.u32(1).u32(0).u32(0)
	b.data = append(b.data, make([]byte, 4*n)...)
	return b.u64(1).text(name).data
}

const mxnetSymbol = `{"nodes":[{"op":"null","name":"data","attrs":{"__shape__":"(0, 784)"},"inputs":[]},{"op":"null","name":"w","inputs":[]},
	{"op":"FullyConnected","name":"fc","inputs":[[0,0,0],[1,0,0]]}],"arg_nodes":[0,1],"heads":[[2,0,0]],"attrs":{"mxnet_version":["int",10900]}}`

func TestMXNet(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"m-symbol.json": {Data: []byte(mxnetSymbol)}, "m-0001.params": {Data: []byte("not this one")}, "m-0002.params": {Data: mxnetFile("arg:w", 6, 2, 3)}}
	sig, err := Read(t.Context(), files, ".", Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSpace(fmt.Sprintln(sig.Inputs, sig.Outputs, sig.Tensors, *sig.Parameters, sig.Producer, len(sig.Files)))
	if want := "[{data  [-1 784] []}] [{fc_output  ? []}] [{w float32 [2 3] []}] 6 mxnet 1.9.0 2"; text != want {
		t.Errorf("it was read as %s, want %s", text, want)
	}
}

func TestHostileMXNet(t *testing.T) {
	t.Parallel()
	file := func(data []byte) fstest.MapFS { return one("m.params", data) }
	graph := func(text string) fstest.MapFS { return one("m.json", []byte(text)) }
	good := mxnetFile("arg:w", 6, 2, 3)
	refuse(t, []hostile{
		{name: "truncated", files: file(good[:70]), want: "longer than the rest"},
		{name: "count", files: file((&ggufBuilder{}).u64(0x112).u64(0).u64(1 << 60).data), want: "do not fit"},
		{name: "overflow", files: file(mxnetFile("w", 6, 1<<40, 1<<40)), want: "63 bits"},
		{name: "negative", files: file(mxnetFile("w", 6, 1<<63)), want: "dimension of -9223372036854775808"},
		{name: "rank", files: file((&ggufBuilder{}).u64(0x112).u64(0).u64(1).u32(mxnetV2).u32(0).u32(1 << 30).data), want: "1073741824 dimensions"},
		{name: "sparse", files: file((&ggufBuilder{}).u64(0x112).u64(0).u64(1).u32(mxnetV2).u32(1).u32(1).data), want: "sparse"},
		{name: "name", files: file((&ggufBuilder{}).u64(0x112).u64(0).u64(0).u64(5).data), want: "0 arrays have 5 names"},
		{name: "no nodes", files: graph(`{"arg_nodes":[]}`), want: "m.json"},
		{name: "head", files: graph(`{"nodes":[],"arg_nodes":[],"heads":[[7,0]]}`), want: "node 7 of 0"},
		{name: "negative head", files: graph(`{"nodes":[],"arg_nodes":[],"heads":[[-1,0]]}`), want: "node -1"},
		{name: "shape", files: graph(`{"nodes":[{"op":"null","name":"x","attrs":{"__shape__":"(a)"}}],"arg_nodes":[]}`), want: `the shape "(a)"`},
	})
}

func FuzzMXNet(f *testing.F) {
	f.Add(mxnetFile("arg:w", 6, 2, 3))
	f.Add([]byte(mxnetSymbol))
	fuzzFormat(f, MXNet, "m.params")
}
