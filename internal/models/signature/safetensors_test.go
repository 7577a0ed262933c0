// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

func TestHostileSafetensors(t *testing.T) {
	t.Parallel()
	tensor := func(dtype, shape, offsets string) string {
		return fmt.Sprintf(`{"w":{"dtype":%q,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
	}
	file := func(header string, data int) fstest.MapFS { return one("m.safetensors", safetensorsFile(header, data)) }
	var many strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&many, `,"w%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}`, i)
	}
	refuse(t, []hostile{
		{name: "short", files: one("m.safetensors", []byte("abc")), want: "fewer than the header's length"},
		{name: "huge header", files: one("m.safetensors", []byte("\xff\xff\xff\xff\xff\xff\xff\xff{}")), want: "more than the 100000000"},
		{name: "truncated header", files: one("m.safetensors", []byte("\xff\x00\x00\x00\x00\x00\x00\x00{}")), want: "more than the file"},
		{name: "no object", files: file(`[]`, 0), want: "no JSON object"},
		{name: "not JSON", files: file(`{x}`, 0), want: "at byte 10"},
		{name: "negative dimension", files: file(tensor("F32", "[-1]", "[0,4]"), 4), want: "dimension 0 is no size"},
		{name: "dimension in quotes", files: file(tensor("F32", `["1"]`, "[0,4]"), 4), want: "dimension 0 is no size"},
		{name: "fraction", files: file(tensor("F32", "[1.5]", "[0,4]"), 4), want: "dimension 0 is no size"},
		{name: "overflow", files: file(tensor("F32", "[4294967296,4294967296,4]", "[0,4]"), 4), want: "more elements than 63 bits"},
		{name: "overflow by width", files: file(tensor("F32", "[4611686018427387904]", "[0,4]"), 4), want: "does not fill"},
		{name: "wrong size", files: file(tensor("F32", "[2]", "[0,4]"), 4), want: "does not fill 4 bytes"},
		{name: "outside", files: file(tensor("F32", "[1]", "[4,8]"), 4), want: "outside of the file"},
		{name: "backwards", files: file(tensor("F32", "[1]", "[4,0]"), 4), want: "outside of the file"},
		{name: "offset of 64 bits", files: file(tensor("F32", "[1]", "[0,18446744073709551615]"), 4), want: "outside of the file"},
		{name: "hole", files: file(tensor("F32", "[1]", "[4,8]"), 8), want: "starts at byte 4"},
		{name: "trailing", files: file(tensor("F32", "[1]", "[0,4]"), 9), want: "belong to no tensor"},
		{name: "overlap", files: file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), want: "not at 8"},
		{name: "twice", files: file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4), want: `"a" occurs twice`},
		{name: "unknown type", files: file(tensor("Q7", "[1]", "[0,4]"), 4), want: `unknown type "Q7"`},
		{name: "metadata", files: file(`{"__metadata__":{"a":1}}`, 0), want: "is no string"},
		{name: "depth", files: file(strings.Repeat(`{"a":`, 100_000), 0), want: "levels of nesting", limit: "Depth"},
		{name: "depth of arrays", files: file(`{"a":`+strings.Repeat(`[`, 100_000), 0), want: "levels of nesting", limit: "Depth"},
		{name: "many", files: file(`{"__metadata__":{}`+many.String()+"}", 0), want: "bytes of names", limit: "Memory"},
		{name: "giant string", files: file(`{"`+strings.Repeat("a", 5<<20)+`":1}`, 0), limit: "Memory"},
	})
	index := func(weights string) fstest.MapFS {
		return fstest.MapFS{
			"model.safetensors.index.json": {Data: []byte(`{"weight_map":` + weights + `}`)},
			"a.safetensors":                {Data: safetensorsFile(tensor("F32", "[1]", "[0,4]"), 4)},
			"b.safetensors":                {Data: safetensorsFile(tensor("F32", "[1]", "[0,4]"), 4)},
		}
	}
	refuse(t, []hostile{
		{name: "shard climbs out", read: ".", files: index(`{"w":"../a.safetensors"}`), want: "not a file of the same folder"},
		{name: "shard is absolute", read: ".", files: index(`{"w":"/etc/passwd"}`), want: "not a file of the same folder"},
		{name: "shard is missing", read: ".", files: index(`{"w":"c.safetensors"}`), want: "c.safetensors"},
		{name: "shard is the folder", read: ".", files: index(`{"w":".."}`), want: "leads out"},
		{name: "tensor in two shards", read: ".", files: index(`{"w":"a.safetensors","x":"b.safetensors"}`), want: `"w" is also in a.safetensors`},
		{name: "tensor in no shard", read: ".", files: index(`{"w":"a.safetensors","x":"a.safetensors"}`), want: `"x" in "a.safetensors", which does not hold it`},
		{name: "no map", read: ".", files: index(`[]`), want: "no weight_map"},
	})
}

func FuzzSafetensors(f *testing.F) {
	f.Add(safetensorsFile(`{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"__metadata__":{"a":"b"}}`, 4))
	f.Add(safetensorsFile(`{"w":{"dtype":"F4","shape":[3,1],"data_offsets":[0,2]}}`, 2))
	fuzzFormat(f, Safetensors, "m.safetensors")
}
