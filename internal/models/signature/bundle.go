// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// The index of TensorFlow's checkpoints is a table of LevelDB: blocks of sorted entries
// whose keys share prefixes, an index of these blocks, and a footer.
// https://github.com/google/leveldb/blob/main/doc/table_format.md

const (
	tableFooter  = 48
	tableMagic   = 0xdb4775248b80fb57
	blockTrailer = 5
)

// readVariables reads the names and shapes of variables from an index.
func readVariables(r *reading, f *file) error {
	if f.size < tableFooter {
		return f.errorf(-1, "it has %d bytes, fewer than a table's footer", f.size)
	}
	at := f.size - tableFooter
	footer, err := f.bytes(at, tableFooter, "the footer")
	if err != nil {
		return err
	}
	if little.Uint64(footer[40:]) != tableMagic {
		return f.errorf(at, "it is no index of variables")
	}
	_, rest, err := blockHandle(footer)
	if err != nil {
		return f.fail(at, err)
	}
	index, _, err := blockHandle(rest)
	if err != nil {
		return f.fail(at, err)
	}
	if r.sig.Parameters == nil {
		r.sig.addParameters(0)
	}
	return f.block(index, func(_ string, value int64, n int64) error {
		data, err := f.bytes(value, n, "an entry of the index")
		if err != nil {
			return err
		}
		handle, _, err := blockHandle(data)
		if err != nil {
			return err
		}
		return f.block(handle, func(key string, value, n int64) error { return bundleEntry(r, key, f.message(value, n)) })
	})
}

// bundleEntry reads a BundleEntryProto. Names are those of the object graph:
// "layers/0/kernel/.ATTRIBUTES/VARIABLE_VALUE".
func bundleEntry(r *reading, key string, m message) error {
	if key == "" || key == "_CHECKPOINTABLE_OBJECT_GRAPH" {
		return nil // the header, and the objects that the variables belong to
	}
	t := Tensor{Name: strings.TrimSuffix(key, "/.ATTRIBUTES/VARIABLE_VALUE"), Shape: Shape{}}
	err := m.fields(map[protowire.Number]func(field) error{
		1: func(f field) error { t.Type = tensorflowType(int64(f.number)); return nil },
		2: func(f field) (err error) { t.Shape, err = tensorflowShape(f.body); return err },
	})
	if err != nil {
		return err
	}
	// Keras exports a second copy of all variables.
	if t.Name == "save_counter" || strings.HasPrefix(t.Name, "_all_variables/") || strings.Contains(t.Name, "/.OPTIMIZER_SLOT/") || strings.HasPrefix(t.Name, "optimizer/") {
		return nil
	}
	if t.Shape == nil {
		return fmt.Errorf("the variable %q has no shape", t.Name)
	}
	return r.addTensor(t)
}

// handle is where a block is.
type handle struct{ offset, size uint64 }

func blockHandle(data []byte) (handle, []byte, error) {
	offset, n := binary.Uvarint(data)
	if n <= 0 {
		return handle{}, nil, errors.New("a block has no place")
	}
	size, k := binary.Uvarint(data[n:])
	if k <= 0 {
		return handle{}, nil, errors.New("a block has no size")
	}
	return handle{offset, size}, data[n+k:], nil
}

// block visits the entries of a block: their key, and where their value is.
func (f *file) block(h handle, visit func(key string, value, n int64) error) error {
	if h.offset > uint64(f.size) || h.size > uint64(f.size)-h.offset || uint64(f.size)-h.offset-h.size < blockTrailer {
		return f.errorf(-1, "a block is %d bytes at %d, outside of the file", h.size, h.offset)
	}
	start, end := int64(h.offset), int64(h.offset+h.size)
	trailer, err := f.need(end, blockTrailer)
	if err != nil {
		return err
	}
	if trailer[0] != 0 {
		return f.errorf(end, "a block is compressed, which TensorFlow does not do")
	}
	// The block ends with the places at which keys are whole, and their number.
	if h.size < 4 {
		return f.errorf(start, "a block of %d bytes is too short", h.size)
	}
	restarts, err := f.u32(end-4, little)
	if err != nil {
		return err
	}
	if uint64(restarts) > (h.size-4)/4 {
		return f.errorf(end-4, "a block claims %d restarts", restarts)
	}
	end -= 4 + 4*int64(restarts)
	var key []byte
	for at := start; at < end; {
		if err := f.r.visit(); err != nil {
			return f.fail(at, err)
		}
		var shared, own, size uint64
		for _, value := range []*uint64{&shared, &own, &size} {
			data, err := f.peek(at, int(min(10, end-at)))
			if err != nil {
				return err
			}
			var n int
			if *value, n = binary.Uvarint(data); n <= 0 {
				return f.errorf(at, "an entry of a block is damaged")
			}
			at += int64(n)
		}
		if left := uint64(end - at); shared > uint64(len(key)) || own > left || size > left-own || own > windowSize {
			return f.errorf(at, "an entry of a block is damaged")
		}
		suffix, err := f.need(at, int(own))
		if err != nil {
			return err
		}
		if err := f.r.hold(int64(shared + own)); err != nil {
			return f.fail(at, err)
		}
		key = append(key[:shared], suffix...)
		at += int64(own)
		if err := visit(strings.ToValidUTF8(string(key), "\ufffd"), at, int64(size)); err != nil {
			return f.fail(at, err)
		}
		at += int64(size)
	}
	return nil
}
