// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"testing/fstest"
)

func TestHostileGGUF(t *testing.T) {
	t.Parallel()
	file := func(data []byte) fstest.MapFS { return one("m.gguf", data) }
	deep := ggufHeader(3, 0, 1).text("a").u32(ggufArray)
	for range 100_000 {
		deep.u32(ggufArray).u64(1)
	}
	refuse(t, []hostile{
		{name: "version", files: file(ggufHeader(4, 0, 0).end(0)), want: "version 4"},
		{name: "cut", files: file([]byte("GGUF\x03\x00")), want: "ends in the middle"},
		{name: "many tensors", files: file(ggufHeader(3, 1<<60, 0).end(100)), want: "do not fit"},
		{name: "many entries", files: file(ggufHeader(3, 0, 1_000_000_000).end(100)), want: "do not fit"},
		{name: "long key", files: file(ggufHeader(3, 0, 1).u64(1 << 62).end(100)), want: "more than the rest"},
		{name: "long text", files: file(ggufHeader(3, 0, 1).text("a").u32(ggufString).u64(1<<64 - 1).end(100)), want: "more than the rest"},
		{name: "long array", files: file(ggufHeader(3, 0, 1).text("a").u32(ggufArray).u32(ggufUint64).u64(1 << 61).end(100)), want: "more than the rest"},
		{name: "array of texts", files: file(ggufHeader(3, 0, 1).text("a").u32(ggufArray).u32(ggufString).u64(1 << 61).end(100)), want: "middle of a value"},
		{name: "unknown item", files: file(ggufHeader(3, 0, 1).text("a").u32(ggufArray).u32(99).u64(1).end(100)), want: "unknown type 99"},
		{name: "unknown value", files: file(ggufHeader(3, 0, 1).text("a").u32(99).end(100)), want: "unknown type 99"},
		{name: "depth", files: file(deep.end(0)), limit: "Depth", want: "levels"},
		{name: "rank", files: file(ggufHeader(3, 1, 0).text("w").u32(1 << 30).end(100)), want: "at most 4"},
		{name: "overflow", files: file(ggufHeader(3, 1, 0).tensor("w", 0, 0, 1<<40, 1<<40).end(100)), want: "63 bits"},
		{name: "overflow by width", files: file(ggufHeader(3, 1, 0).tensor("w", 27, 0, 1<<62).end(100)), want: "cannot be in a file"},
		{name: "negative", files: file(ggufHeader(3, 1, 0).tensor("w", 0, 0, 1<<63).end(100)), want: "dimension of 9223372036854775808"},
		{name: "type", files: file(ggufHeader(3, 1, 0).tensor("w", 77, 0, 1).end(100)), want: "unknown type 77"},
		{name: "twice", files: file(ggufHeader(3, 2, 0).tensor("w", 0, 0, 1).tensor("w", 0, 32, 1).end(100)), want: `two tensors "w"`},
		{name: "blocks", files: file(ggufHeader(3, 1, 0).tensor("w", 2, 0, 33).end(100)), want: "whole blocks"},
		{name: "unaligned", files: file(ggufHeader(3, 1, 0).tensor("w", 0, 1, 1).end(100)), want: "not aligned"},
		{name: "truncated data", files: file(ggufHeader(3, 1, 0).tensor("w", 0, 0, 26).end(100)), want: "truncated"},
		{name: "offset", files: file(ggufHeader(3, 1, 0).tensor("w", 0, 1<<63-32, 1).end(100)), want: "truncated"},
		{name: "alignment", files: file(ggufHeader(3, 0, 1).text("general.alignment").u32(ggufUint32).u32(0).end(0)), want: "multiple of 8"},
		{name: "missing part", files: one("m-00001-of-00002.gguf", ggufFile(t, 3)), want: "m-00002-of-00002.gguf"},
	})
}

func TestGGUFVariants(t *testing.T) {
	t.Parallel()
	// The same model for big-endian machines, and in version 1, whose lengths have 32 bits.
	order := binary.BigEndian
	text := func(to []byte, s string) []byte { return append(order.AppendUint64(to, uint64(len(s))), s...) }
	big := order.AppendUint64(order.AppendUint64(order.AppendUint32([]byte("GGUF"), 3), 1), 1)
	big = order.AppendUint16(order.AppendUint32(text(big, "n"), ggufUint16), 258)
	big = order.AppendUint64(order.AppendUint32(text(big, "w"), 1), 4)
	big = order.AppendUint64(order.AppendUint32(big, 0), 0)
	big = append(big, make([]byte, 31-(len(big)+31)%32+16)...)
	first := (&ggufBuilder{data: []byte("GGUF")}).u32(1).u32(1).u32(1).u32(1)
	first.data = append(first.data, 'n')
	first.u32(ggufUint16)
	first.data = append(first.data, 2, 1)
	first.u32(1)
	first.data = append(first.data, 'w')
	first.u32(1).u32(4).u32(0).u64(0)
	for name, data := range map[string][]byte{"big-endian": big, "version 1": first.end(16)} {
		sig, err := Read(t.Context(), one("m.gguf", data), "m.gguf", Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if sig.Metadata["n"] != "258" || *sig.Parameters != 4 {
			t.Errorf("%s: %s", name, describe(t, sig))
		}
	}
	parts := fstest.MapFS{
		"m-00001-of-00002.gguf": {Data: ggufFile(t, 3)},
		"m-00002-of-00002.gguf": {Data: bytes.ReplaceAll(ggufFile(t, 3), []byte("w"), []byte("v"))},
	}
	sig, err := Read(t.Context(), parts, ".", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if names := []string{sig.Tensors[0].Name, sig.Tensors[1].Name}; !slices.Equal(names, []string{"w", "v"}) || len(sig.Files) != 2 || *sig.Parameters != 256 {
		t.Errorf("a split model: %s", describe(t, sig))
	}
}

func FuzzGGUF(f *testing.F) {
	f.Add(ggufFile(f, 3))
	fuzzFormat(f, GGUF, "m.gguf", "*.gguf")
}
