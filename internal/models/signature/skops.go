// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// readSkops reads an archive of skops: a tree of objects in JSON, with arrays beside it.
// https://skops.readthedocs.io/en/stable/persistence.html
func readSkops(r *reading, f *file) error {
	a, err := f.archive()
	if err != nil {
		return err
	}
	schema, err := a.open("schema.json")
	if err != nil {
		return err
	}
	tree, err := schema.json(0, schema.size, everything)
	if err != nil {
		return err
	}
	if version := getText(tree, "_skops_version"); version != "" {
		r.sig.Producer = "skops " + version
		r.sig.setMetadata("_skops_version", version)
	}
	s := &skopsReader{a: a, m: &pickleMachine{budget: r.budget, globals: map[pyGlobal]bool{}, unsafe: map[string]bool{}}, known: map[string]pyValue{}}
	root, err := s.value(tree, 1)
	if err != nil {
		return schema.fail(-1, err)
	}
	for global := range s.m.globals {
		r.sig.Callables = append(r.sig.Callables, global.String())
		if dangerous(global) {
			r.sig.Unsafe = append(r.sig.Unsafe, global.String())
		}
	}
	return describeEstimator(r, s.m, root)
}

// skopsReader makes of the tree what a pickle of the same objects gives.
type skopsReader struct {
	a     *archive
	m     *pickleMachine
	known map[string]pyValue
}

func (s *skopsReader) value(node document, depth int) (pyValue, error) {
	if err := s.m.nest(depth); err != nil {
		return nil, err
	}
	if err := s.m.hold(100); err != nil {
		return nil, err
	}
	if _, ok := node.(object); !ok {
		return pyOpaque{}, nil
	}
	id := getText(node, "__id__")
	if v, seen := s.known[id]; seen && id != "" {
		return v, nil
	}
	v, err := s.node(node, depth)
	if err == nil && id != "" {
		s.known[id] = v
	}
	return v, err
}

func (s *skopsReader) node(node document, depth int) (pyValue, error) {
	class := pyGlobal{getText(node, "__module__"), getText(node, "__class__")}
	switch loader := getText(node, "__loader__"); loader {
	case "JsonNode":
		return s.scalar(getText(node, "content")), nil
	case "DictNode":
		content, _ := get(node, "content").(object)
		d := &pyDict{}
		for key, item := range content {
			v, err := s.value(item, depth+1)
			if err != nil {
				return nil, err
			}
			d.keys, d.values = append(d.keys, key), append(d.values, v)
		}
		return d, nil
	case "ListNode", "TupleNode", "SetNode":
		var items []pyValue
		for _, item := range getList(node, "content") {
			v, err := s.value(item, depth+1)
			if err != nil {
				return nil, err
			}
			items = append(items, v)
		}
		if loader == "TupleNode" {
			return &pyTuple{items}, nil
		}
		return &pyList{items}, nil
	case "NdArrayNode":
		if file := getText(node, "file"); file != "" {
			return s.array(file)
		}
		// An array of objects: a list of them, and its shape.
		var items []pyValue
		for _, item := range getList(node, "content") {
			v, err := s.value(item, depth+1)
			if err != nil {
				return nil, err
			}
			items = append(items, v)
		}
		return &pyList{items}, nil
	case "ObjectNode", "TreeNode", "ReduceNode", "SGDNode":
		s.m.globals[class] = true
		state, err := s.value(get(node, "content"), depth+1)
		if err != nil {
			return nil, err
		}
		if list, ok := state.(*pyDict); ok && loader != "ObjectNode" {
			if inner, ok := s.m.lookup(list, "__getstate__").(*pyDict); ok {
				state = inner
			}
		}
		return s.m.object(class, nil).(*pyObject).with(state), nil
	case "TypeNode", "FunctionNode", "MethodNode", "PartialNode", "OperatorFuncNode":
		if content, ok := get(node, "content").(object); ok {
			class = pyGlobal{getText(content, "module_path"), getText(content, "function")}
		}
		if class.module != "" {
			s.m.globals[class] = true
		}
	}
	return pyOpaque{}, nil
}

func (o *pyObject) with(state pyValue) *pyObject {
	o.state = state
	return o
}

func (s *skopsReader) scalar(text string) pyValue {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if unquoted, err := strconv.Unquote(text); err == nil {
		return unquoted
	}
	switch text {
	case "null":
		return nil
	case "true", "false":
		return text == "true"
	}
	return pyOpaque{}
}

// npyHeader is the Python literal at the start of a .npy file.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
var npyHeader = regexp.MustCompile(`^\{'descr': (?:'([^']*)'|(.*)), 'fortran_order': (?:True|False), 'shape': \(([0-9, ]*)\), \} *\n$`)

// array reads the type, the shape and, of small ones, the data of a .npy file.
func (s *skopsReader) array(name string) (pyValue, error) {
	f, err := s.a.open(name)
	if err != nil {
		return nil, err
	}
	head, err := f.need(0, 12)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(string(head), "\x93NUMPY") {
		return nil, f.errorf(0, "it is no .npy file")
	}
	start, length := int64(10), int64(little.Uint16(head[8:]))
	if head[6] > 1 {
		start, length = 12, int64(little.Uint32(head[8:]))
	}
	header, err := f.text(start, length, "the header")
	if err != nil {
		return nil, err
	}
	parsed := npyHeader.FindStringSubmatch(header)
	if parsed == nil {
		return nil, f.errorf(start, "its header is %q", header)
	}
	kind := numpyType(parsed[1])
	kind.big = strings.HasPrefix(parsed[1], ">")
	shape := Shape{}
	for _, text := range strings.FieldsFunc(parsed[3], func(c rune) bool { return c == ',' || c == ' ' }) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, f.errorf(start, "a dimension is %q", text)
		}
		shape = append(shape, Dim{Size: n})
	}
	n, err := shape.elements()
	if err != nil {
		return nil, f.fail(start, err)
	}
	data := &pyBytes{size: f.size - start - length}
	if kind.size > 0 {
		if n > data.size/kind.size+1 || n*kind.size != data.size {
			return nil, f.fail(start, fmt.Errorf("%w: %s of the shape %v", errors.New("the data has another size than the header says"), kind.name, shape))
		}
		if data.size <= keptBytes {
			if data.data, err = f.bytes(start+length, data.size, "the data"); err != nil {
				return nil, err
			}
		}
	}
	return &pyObject{class: pyGlobal{"", "array"}, state: &pyArray{kind, shape, data}}, nil
}
