// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// safetensorsHeader is the largest header that the format allows, in bytes.
const safetensorsHeader = 100_000_000

// safetensorsTypes are the element types with their width in bits.
// https://huggingface.co/docs/safetensors
var safetensorsTypes = map[string]struct {
	name string
	bits int64
}{
	"BOOL": {"bool", 8}, "U8": {"uint8", 8}, "I8": {"int8", 8},
	"F4": {"float4_e2m1", 4}, "F6_E2M3": {"float6_e2m3", 6}, "F6_E3M2": {"float6_e3m2", 6},
	"F8_E5M2": {"float8_e5m2", 8}, "F8_E4M3": {"float8_e4m3", 8}, "F8_E8M0": {"float8_e8m0", 8},
	"F8_E4M3FNUZ": {"float8_e4m3fnuz", 8}, "F8_E5M2FNUZ": {"float8_e5m2fnuz", 8},
	"I16": {"int16", 16}, "U16": {"uint16", 16}, "F16": {"float16", 16}, "BF16": {"bfloat16", 16},
	"I32": {"int32", 32}, "U32": {"uint32", 32}, "F32": {"float32", 32},
	"C64": {"complex64", 64}, "F64": {"float64", 64}, "I64": {"int64", 64}, "U64": {"uint64", 64},
}

// readSafetensors reads one file, or all shards of an index ("model.safetensors.index.json").
func readSafetensors(r *reading, f *file) error {
	r.sig.note("the format holds weights only: no inputs and outputs")
	if strings.HasSuffix(f.name, ".json") {
		return readShards(r, f)
	}
	return readShard(r, f)
}

// readShards reads the files of an index, and checks that each holds what the index says.
func readShards(r *reading, f *file) error {
	index, err := f.json(0, f.size, everything)
	if err != nil {
		return err
	}
	weights, ok := get(index, "weight_map").(object)
	if !ok {
		return f.errorf(-1, "this index has no weight_map")
	}
	shards := map[string]int{}
	for name, shard := range weights {
		text, ok := shard.(string)
		if !ok || text == "" {
			return f.errorf(-1, "weight_map.%q names no file", name)
		}
		shards[text]++
	}
	where := map[string]string{}
	for _, shard := range slices.Sorted(maps.Keys(shards)) {
		if shard != path.Base(shard) {
			return f.errorf(-1, "weight_map names the shard %q, which is not a file of the same folder", shard)
		}
		s, err := f.beside(shard)
		if err != nil {
			return err
		}
		r.addFile(s)
		before := len(r.sig.Tensors)
		if err := readShard(r, s); err != nil {
			return s.fail(-1, err)
		}
		r.done(s)
		for _, t := range r.sig.Tensors[before:] {
			if other, twice := where[t.Name]; twice {
				return s.errorf(-1, "the tensor %q is also in %s", t.Name, other)
			}
			where[t.Name] = shard
			if weights[t.Name] != shard {
				r.sig.note("%s holds the tensor %q, which the index does not place there", shard, t.Name)
			}
		}
	}
	for name, shard := range weights {
		if where[name] != shard {
			return f.errorf(-1, "the index places the tensor %q in %q, which does not hold it", name, shard)
		}
	}
	if total, ok := getInt(index, "metadata", "total_size"); ok {
		r.sig.setMetadata("total_size", fmt.Sprint(total))
	}
	return nil
}

func readShard(r *reading, f *file) error {
	if f.size < 8 {
		return f.errorf(0, "the file has %d bytes, fewer than the header's length", f.size)
	}
	length, err := f.u64(0, little)
	if err != nil {
		return err
	}
	if length > safetensorsHeader {
		return f.errorf(0, "the header claims %d bytes, more than the %d that the format allows", length, safetensorsHeader)
	}
	if err := f.span(8, int64(length), "the header"); err != nil {
		return err
	}
	header, err := f.json(8, int64(length), everything)
	if err != nil {
		return err
	}
	entries, ok := header.(object)
	if !ok {
		return f.errorf(8, "the header is no JSON object")
	}
	type stored struct {
		Tensor
		start, end int64
	}
	var all []stored
	data := f.size - 8 - int64(length)
	for name, entry := range entries {
		if name == "__metadata__" {
			metadata, ok := entry.(object)
			if !ok {
				return f.errorf(8, "__metadata__ is no object")
			}
			for key, value := range metadata {
				text, ok := value.(string)
				if !ok {
					return f.errorf(8, "__metadata__.%q is no string", key)
				}
				r.sig.setMetadata(key, text)
			}
			continue
		}
		t := stored{Tensor: Tensor{Name: name}}
		kind, known := safetensorsTypes[getText(entry, "dtype")]
		if !known {
			return f.errorf(8, "tensor %q has the unknown type %q", name, getText(entry, "dtype"))
		}
		t.Type = kind.name
		dims, ok := get(entry, "shape").([]document)
		if !ok {
			return f.errorf(8, "tensor %q has no shape", name)
		}
		for i, dim := range dims {
			n, ok := getInt(dim)
			if _, isNumber := dim.(number); !ok || !isNumber || n < 0 {
				return f.errorf(8, "tensor %q: dimension %d is no size: %v", name, i, dim)
			}
			t.Shape = append(t.Shape, Dim{Size: n})
		}
		if t.Shape == nil {
			t.Shape = Shape{}
		}
		offsets := getList(entry, "data_offsets")
		if len(offsets) != 2 {
			return f.errorf(8, "tensor %q has no data_offsets", name)
		}
		var start, end bool
		t.start, start = getInt(offsets[0])
		t.end, end = getInt(offsets[1])
		if !start || !end || t.start < 0 || t.end < t.start || t.end > data {
			return f.errorf(8, "tensor %q is at the bytes %v to %v of %d: outside of the file", name, offsets[0], offsets[1], data)
		}
		n, err := t.Shape.elements()
		if err != nil {
			return f.errorf(8, "tensor %q: %w", name, err)
		}
		if width := kind.bits; n > (1<<62)/width || (n*width+7)/8 != t.end-t.start {
			return f.errorf(8, "tensor %q: %s of the shape %v does not fill %d bytes", name, kind.name, t.Shape, t.end-t.start)
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b stored) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end), strings.Compare(a.Name, b.Name))
	})
	// The format forbids holes and overlaps: they would let one file mean two things.
	at := int64(0)
	for _, t := range all {
		if t.start != at {
			return f.errorf(8, "tensor %q starts at byte %d of the data, not at %d where the one before it ends", t.Name, t.start, at)
		}
		at = t.end
		if err := r.addTensor(t.Tensor); err != nil {
			return f.fail(8, err)
		}
	}
	if at != data {
		return f.fail(8+int64(length)+at, errors.New("bytes that belong to no tensor follow the last one"))
	}
	if r.sig.Parameters == nil {
		r.sig.addParameters(0)
	}
	return nil
}
