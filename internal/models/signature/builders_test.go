// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// Small writers of models, for what no framework would write.

func stringOf(v any) string {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// safetensorsFile is a header in front of some bytes of data.
func safetensorsFile(header string, data int) []byte {
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(file, header...), make([]byte, data)...)
}

// ggufBuilder appends the values of GGUF.
type ggufBuilder struct{ data []byte }

func (b *ggufBuilder) u32(v uint32) *ggufBuilder {
	b.data = binary.LittleEndian.AppendUint32(b.data, v)
	return b
}

func (b *ggufBuilder) u64(v uint64) *ggufBuilder {
	b.data = binary.LittleEndian.AppendUint64(b.data, v)
	return b
}

func (b *ggufBuilder) text(s string) *ggufBuilder {
	b.u64(uint64(len(s)))
	b.data = append(b.data, s...)
	return b
}

func ggufHeader(version uint32, tensors, entries uint64) *ggufBuilder {
	b := &ggufBuilder{data: []byte("GGUF")}
	return b.u32(version).u64(tensors).u64(entries)
}

func (b *ggufBuilder) tensor(name string, kind uint32, offset uint64, dims ...uint64) *ggufBuilder {
	b.text(name).u32(uint32(len(dims)))
	for _, d := range dims {
		b.u64(d)
	}
	return b.u32(kind).u64(offset)
}

// end pads to the data and adds n bytes of it.
func (b *ggufBuilder) end(n int) []byte {
	for len(b.data)%32 != 0 {
		b.data = append(b.data, 0)
	}
	return append(b.data, make([]byte, n)...)
}

// ggufFile is a small model.
func ggufFile(t testing.TB, version uint32) []byte {
	t.Helper()
	return ggufHeader(version, 1, 1).text("general.architecture").u32(ggufString).text("llama").tensor("w", 2, 0, 64, 2).end(72)
}

// proto builds a protobuf message.
type proto []byte

func (p proto) bytes(num protowire.Number, value []byte) proto {
	return protowire.AppendBytes(protowire.AppendTag(p, num, protowire.BytesType), value)
}

func (p proto) text(num protowire.Number, value string) proto { return p.bytes(num, []byte(value)) }

func (p proto) varint(num protowire.Number, value uint64) proto {
	return protowire.AppendVarint(protowire.AppendTag(p, num, protowire.VarintType), value)
}

func (p proto) fixed32(num protowire.Number, value uint32) proto {
	return protowire.AppendFixed32(protowire.AppendTag(p, num, protowire.Fixed32Type), value)
}

// onnxTensor is a TensorProto of float32.
func onnxTensor(name string, raw int, dims ...int64) proto {
	var p proto
	for _, d := range dims {
		p = p.varint(1, uint64(d))
	}
	return p.varint(2, 1).text(8, name).bytes(9, make([]byte, raw))
}

// onnxExternal is a TensorProto of float32 whose data is elsewhere.
func onnxExternal(location string, offset, length int64, dims ...int64) proto {
	var p proto
	for _, d := range dims {
		p = p.varint(1, uint64(d))
	}
	entry := func(key, value string) proto { return proto{}.text(1, key).text(2, value) }
	return p.varint(2, 1).text(8, "w").varint(14, 1).bytes(13, entry("location", location)).
		bytes(13, entry("offset", fmt.Sprint(offset))).bytes(13, entry("length", fmt.Sprint(length)))
}

// onnxModel is a model with the graph's fields.
func onnxModel(graph proto) []byte { return proto{}.varint(1, 8).bytes(7, graph) }

// onnxValue is a ValueInfoProto of a float32 tensor.
func onnxValue(name string, dims ...any) proto {
	var shape proto
	for _, d := range dims {
		switch d := d.(type) {
		case int:
			shape = shape.bytes(1, proto{}.varint(1, uint64(d)))
		case string:
			shape = shape.bytes(1, proto{}.text(2, d))
		default:
			shape = shape.bytes(1, nil)
		}
	}
	return proto{}.text(1, name).bytes(2, proto{}.bytes(1, proto{}.varint(1, 1).bytes(2, shape)))
}
