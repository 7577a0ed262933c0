// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"fmt"
	"path"
	"strings"
)

// mxnetTypes are the type flags of mshadow.
var mxnetTypes = []struct {
	name  string
	width int64
}{{"float32", 4}, {"float64", 8}, {"float16", 2}, {"uint8", 1}, {"int32", 4}, {"int8", 1}, {"int64", 8}, {"bool", 1}, {"int16", 2}, {"uint16", 2}, {"uint32", 4}, {"uint64", 8}, {"bfloat16", 2}}

// The first word of an array, by version.
const (
	mxnetV1 = 0xf993fac8
	mxnetV2 = 0xf993fac9
	mxnetV3 = 0xf993faca
)

// readMXNet reads a graph (NAME-symbol.json) with the weights beside it
// (NAME-0000.params), or weights alone.
func readMXNet(r *reading, f *file) error {
	head, err := f.peek(0, 1)
	if err != nil {
		return err
	}
	if len(head) > 0 && head[0] != '{' {
		r.sig.note("the file holds weights only: its graph is in another, NAME-symbol.json")
		return mxnetParams(r, f)
	}
	if prefix, ok := strings.CutSuffix(path.Base(f.name), "-symbol.json"); ok {
		names, err := readDir(r, path.Dir(f.name))
		if err != nil {
			return err
		}
		params := ""
		for _, name := range names {
			if strings.HasPrefix(name, prefix+"-") && strings.HasSuffix(name, ".params") {
				params = name // the last epoch
			}
		}
		if params != "" {
			p, err := f.beside(params)
			if err != nil {
				return err
			}
			r.addFile(p)
			if err := mxnetParams(r, p); err != nil {
				return p.fail(-1, err)
			}
		}
	}
	graph, err := f.json(0, f.size, everything)
	if err != nil {
		return err
	}
	return f.fail(-1, mxnetGraph(r, graph))
}

// mxnetGraph reads the nodes of a graph: those without an operator are weights or inputs.
func mxnetGraph(r *reading, graph document) error {
	weights := map[string]bool{}
	for _, t := range r.sig.Tensors {
		weights[t.Name] = true
	}
	nodes := getList(graph, "nodes")
	if nodes == nil {
		return fmt.Errorf("it has no nodes: this is no graph of MXNet")
	}
	for _, node := range nodes {
		name, op := getText(node, "name"), getText(node, "op")
		if op != "null" {
			if err := r.operator(op); err != nil {
				return err
			}
			continue
		}
		if weights[name] {
			continue
		}
		t := Tensor{Name: name}
		// (0, 3, 224, 224), where 0 is unknown.
		text := getText(node, "attrs", "__shape__")
		if text == "" {
			text = getText(node, "attr", "__shape__")
		}
		if inner, ok := strings.CutPrefix(text, "("); ok {
			t.Shape = Shape{}
			for _, part := range strings.FieldsFunc(strings.TrimSuffix(inner, ")"), func(c rune) bool { return c == ',' || c == ' ' }) {
				n, ok := getInt(number(part))
				if !ok {
					return fmt.Errorf("the input %q has the shape %q", name, text)
				}
				if n <= 0 {
					n = -1
				}
				t.Shape = append(t.Shape, Dim{Size: n})
			}
		}
		if err := r.list(&r.sig.Inputs, t); err != nil {
			return err
		}
	}
	for _, head := range getList(graph, "heads") {
		list, _ := head.([]document)
		if len(list) == 0 {
			return fmt.Errorf("an output names no node")
		}
		index, ok := getInt(list[0])
		if !ok || index < 0 || index >= int64(len(nodes)) {
			return fmt.Errorf("an output is the node %v of %d", list[0], len(nodes))
		}
		if err := r.list(&r.sig.Outputs, Tensor{Name: getText(nodes[index], "name") + "_output"}); err != nil {
			return err
		}
	}
	if version := getList(graph, "attrs", "mxnet_version"); len(version) == 2 {
		if n, ok := getInt(version[1]); ok {
			r.sig.Producer = fmt.Sprintf("mxnet %d.%d.%d", n/10000, n/100%100, n%100)
		}
	}
	return nil
}

// mxnetParams reads a list of arrays and their names ("arg:fc1_weight").
func mxnetParams(r *reading, f *file) error {
	at := int64(0)
	u32 := func() (uint32, error) { at += 4; return f.u32(at-4, little) }
	u64 := func() (uint64, error) { at += 8; return f.u64(at-8, little) }
	magic, err := u64()
	if err != nil {
		return err
	}
	if magic != 0x112 {
		return f.errorf(0, "it starts with %#x: these are no weights of MXNet", magic)
	}
	if _, err := u64(); err != nil {
		return err
	}
	count, err := u64()
	if err != nil {
		return err
	}
	if count > uint64(f.size)/8 {
		return f.errorf(16, "%d arrays do not fit into %d bytes", count, f.size)
	}
	var all []Tensor
	for range count {
		start := at
		word, err := u32()
		if err != nil {
			return err
		}
		if word == mxnetV2 || word == mxnetV3 {
			storage, err := u32()
			if err != nil {
				return err
			}
			if storage != 0 {
				return f.errorf(start, "%w: an array is sparse", ErrUnsupported)
			}
		}
		rank, wide := word, false
		if word == mxnetV1 || word == mxnetV2 || word == mxnetV3 {
			wide = true
			if rank, err = u32(); err != nil {
				return err
			}
		}
		if rank > 32 {
			return f.errorf(start, "an array has %d dimensions", rank)
		}
		t := Tensor{Shape: Shape{}}
		for range rank {
			var n uint64
			if wide {
				n, err = u64()
			} else {
				var narrow uint32
				narrow, err = u32()
				n = uint64(narrow)
			}
			if err != nil {
				return err
			}
			if int64(n) < 0 {
				return f.errorf(start, "an array has a dimension of %d", int64(n))
			}
			t.Shape = append(t.Shape, Dim{Size: int64(n)})
		}
		if rank == 0 && word != mxnetV3 {
			return f.errorf(start, "an array is missing: it has no shape")
		}
		at += 8 // where it was: the kind and number of a device
		kind, err := u32()
		if err != nil {
			return err
		}
		if int64(kind) >= int64(len(mxnetTypes)) {
			return f.errorf(start, "an array has the unknown type %d", kind)
		}
		n, err := t.Shape.elements()
		if err != nil {
			return f.fail(start, err)
		}
		t.Type = mxnetTypes[kind].name
		if n > (f.size-at)/mxnetTypes[kind].width {
			return f.errorf(start, "an array of the shape %v is longer than the rest of the file", t.Shape)
		}
		at += n * mxnetTypes[kind].width
		if err := r.list(&all, t); err != nil {
			return f.fail(start, err)
		}
	}
	names, err := u64()
	if err != nil {
		return err
	}
	if names != 0 && names != count {
		return f.errorf(at-8, "%d arrays have %d names", count, names)
	}
	for i := range all {
		if names == 0 {
			all[i].Name = fmt.Sprint(i)
		} else {
			length, err := u64()
			if err != nil {
				return err
			}
			if length > uint64(f.size-at) {
				return f.errorf(at-8, "a name claims %d bytes, more than the rest of the file", length)
			}
			text, err := f.text(at, int64(length), "a name")
			if err != nil {
				return err
			}
			at += int64(length)
			_, name, _ := strings.Cut(text, ":")
			all[i].Name = strings.ToValidUTF8(name, "\ufffd")
		}
		if err := r.addTensor(all[i]); err != nil {
			return f.fail(at, err)
		}
	}
	return nil
}
