// SPDX-License-Identifier: Apache-2.0

package onnx

import "fmt"

// DataType is a TensorProto.DataType.
type DataType int64

// The types that are computed with here.
const (
	Undefined DataType = 0
	Float32   DataType = 1
	Uint8     DataType = 2
	Int8      DataType = 3
	Int32     DataType = 6
	Int64     DataType = 7
	Bool      DataType = 9
	Float16   DataType = 10
	Float64   DataType = 11
)

// dataTypes are the names of the types with the width of a value in bits, 0 if it varies.
var dataTypes = map[DataType]struct {
	name string
	bits int64
}{
	1: {"float32", 32}, 2: {"uint8", 8}, 3: {"int8", 8}, 4: {"uint16", 16}, 5: {"int16", 16}, 6: {"int32", 32}, 7: {"int64", 64},
	8: {"string", 0}, 9: {"bool", 8}, 10: {"float16", 16}, 11: {"float64", 64}, 12: {"uint32", 32}, 13: {"uint64", 64},
	14: {"complex64", 64}, 15: {"complex128", 128}, 16: {"bfloat16", 16},
	17: {"float8_e4m3fn", 8}, 18: {"float8_e4m3fnuz", 8}, 19: {"float8_e5m2", 8}, 20: {"float8_e5m2fnuz", 8},
	21: {"uint4", 4}, 22: {"int4", 4}, 23: {"float4_e2m1", 4}, 24: {"float8_e8m0", 8}, 25: {"uint2", 2}, 26: {"int2", 2},
	27: {"float6_e2m3", 6}, 28: {"float6_e3m2", 6},
}

// String is the name of the type, such as float32, or type(N) of one that is not known.
func (t DataType) String() string {
	if kind, known := dataTypes[t]; known {
		return kind.name
	}
	return fmt.Sprintf("type(%d)", int64(t))
}

// Bits is the width of a value in bits, 0 for strings. known is whether the type is known.
func (t DataType) Bits() (bits int64, known bool) {
	kind, known := dataTypes[t]
	return kind.bits, known
}
