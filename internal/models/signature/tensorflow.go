// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// tensorflowTypes are the values of tensorflow.DataType.
// https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/framework/types.proto
var tensorflowTypes = []string{
	"", "float32", "float64", "int32", "uint8", "int16", "int8", "string", "complex64", "int64", "bool",
	"qint8", "quint8", "qint32", "bfloat16", "qint16", "quint16", "uint16", "complex128", "float16", "resource", "variant", "uint32", "uint64",
	"float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz", "int4", "uint4", "int2", "uint2",
}

func tensorflowType(number int64) string {
	if number >= 0 && number < int64(len(tensorflowTypes)) {
		return tensorflowTypes[number]
	}
	return fmt.Sprintf("type(%d)", number)
}

// servingDefault is the function that servers call if none is named.
const servingDefault = "serving_default"

// readSavedModel reads a saved_model.pb, and the index of the variables beside it.
func readSavedModel(r *reading, f *file) error {
	graphs := 0
	var schema int64
	err := f.message(0, f.size).fields(map[protowire.Number]func(field) error{
		1: intoInt(&schema),
		2: func(g field) error {
			// Each is the model for other tags; servers take the first of "serve".
			if graphs++; graphs > 1 {
				r.sig.note("it has %d graphs, of which the first is described", graphs)
				return nil
			}
			return metaGraph(r, g.body)
		},
	})
	if err != nil {
		return err
	}
	if graphs == 0 {
		return f.errorf(-1, "it has no graph: this is no SavedModel")
	}
	r.sig.FormatVersion = strconv.FormatInt(schema, 10)
	slices.SortFunc(r.sig.Functions, func(a, b Function) int { return cmp.Compare(a.Name, b.Name) })
	for _, function := range r.sig.Functions {
		if function.Name == servingDefault || len(r.sig.Functions) == 1 {
			r.sig.Inputs, r.sig.Outputs = function.Inputs, function.Outputs
		}
	}
	index := path.Join(path.Dir(f.name), "variables", "variables.index")
	if _, err := fs.Stat(r.fsys, index); errors.Is(err, fs.ErrNotExist) {
		r.sig.note("it has no variables: weights, if any, are constants of the graph")
		return nil
	}
	variables, err := r.file(index)
	if err != nil {
		return err
	}
	return variables.fail(-1, readVariables(r, variables))
}

// metaGraph reads a MetaGraphDef.
func metaGraph(r *reading, m message) error {
	var tags []string
	return m.fields(map[protowire.Number]func(field) error{
		1: func(f field) error {
			var version string
			err := f.body.fields(map[protowire.Number]func(field) error{
				4: func(f field) error {
					tag, err := f.text()
					tags = append(tags, tag)
					return errors.Join(err, r.hold(16))
				},
				5: into(&version),
			})
			if version != "" {
				r.sig.Producer = "tensorflow " + version
			}
			r.sig.setMetadata("tags", strings.Join(tags, ","))
			return err
		},
		2: func(f field) error { return graphDef(f.body, func(n node) error { return r.operator(n.op) }) },
		5: func(f field) error {
			function, internal, err := signatureDef(r, f.body)
			if err != nil || internal {
				return err
			}
			if err := r.hold(64); err != nil {
				return err
			}
			r.sig.addFunction(function)
			return nil
		},
	})
}

func (r *reading) operator(name string) error {
	r.sig.countOperator(name)
	return r.hold(48)
}

// signatureDef reads an entry of the map from names to SignatureDefs. Internal ones are
// those by which TensorFlow restores objects.
func signatureDef(r *reading, m message) (function Function, internal bool, err error) {
	err = m.fields(map[protowire.Number]func(field) error{
		1: into(&function.Name),
		2: func(f field) error {
			return f.body.fields(map[protowire.Number]func(field) error{
				1: func(f field) error { return tensorInfo(r, f.body, &function.Inputs) },
				2: func(f field) error { return tensorInfo(r, f.body, &function.Outputs) },
			})
		},
	})
	for _, list := range [][]Tensor{function.Inputs, function.Outputs} {
		slices.SortFunc(list, func(a, b Tensor) int { return cmp.Compare(a.Name, b.Name) })
	}
	return function, strings.HasPrefix(function.Name, "__saved_model_"), err
}

// tensorInfo reads an entry of the map from names to TensorInfos.
func tensorInfo(r *reading, m message, to *[]Tensor) error {
	var t Tensor
	err := m.fields(map[protowire.Number]func(field) error{
		1: into(&t.Name),
		2: func(f field) error {
			return f.body.fields(map[protowire.Number]func(field) error{
				2: func(f field) error { t.Type = tensorflowType(int64(f.number)); return nil },
				3: func(f field) (err error) { t.Shape, err = tensorflowShape(f.body); return err },
			})
		},
	})
	if err != nil {
		return err
	}
	return r.list(to, t)
}

// tensorflowShape reads a TensorShapeProto.
func tensorflowShape(m message) (Shape, error) {
	shape, unknown := Shape{}, false
	err := m.fields(map[protowire.Number]func(field) error{
		2: func(f field) error {
			dim := Dim{}
			err := f.body.fields(map[protowire.Number]func(field) error{1: func(f field) error {
				dim.Size = max(-1, int64(f.number))
				return nil
			}})
			shape = append(shape, dim)
			return errors.Join(err, m.f.r.hold(24))
		},
		3: func(f field) error { unknown = f.number != 0; return nil },
	})
	if unknown {
		return nil, err
	}
	return shape, err
}

// node is a NodeDef, of whose attributes three matter.
type node struct {
	name, op string
	inputs   []string
	dtype    int64
	shape    Shape
	// value is the constant of a Const.
	value *Tensor
}

// graphDef visits the nodes of a GraphDef and of its functions.
func graphDef(m message, visit func(node) error) error {
	each := func(f field) error {
		n, err := nodeDef(f.body)
		if err != nil {
			return err
		}
		return visit(n)
	}
	return m.fields(map[protowire.Number]func(field) error{
		1: each,
		2: func(f field) error {
			return f.body.fields(map[protowire.Number]func(field) error{
				1: func(f field) error { return f.body.fields(map[protowire.Number]func(field) error{3: each}) },
			})
		},
	})
}

func nodeDef(m message) (n node, err error) {
	err = m.fields(map[protowire.Number]func(field) error{
		1: into(&n.name),
		2: into(&n.op),
		3: func(f field) error {
			input, err := f.text()
			n.inputs = append(n.inputs, input)
			return err
		},
		5: func(f field) error {
			var key string
			var value message
			err := f.body.fields(map[protowire.Number]func(field) error{1: into(&key), 2: func(f field) error { value = f.body; return nil }})
			if err != nil || value.f == nil {
				return err
			}
			switch key {
			case "dtype":
				return value.fields(map[protowire.Number]func(field) error{6: intoInt(&n.dtype)})
			case "shape":
				return value.fields(map[protowire.Number]func(field) error{7: func(f field) (err error) { n.shape, err = tensorflowShape(f.body); return err }})
			case "value":
				return value.fields(map[protowire.Number]func(field) error{8: func(f field) error {
					t := Tensor{Shape: Shape{}}
					n.value = &t
					return f.body.fields(map[protowire.Number]func(field) error{
						1: func(f field) error { t.Type = tensorflowType(int64(f.number)); return nil },
						2: func(f field) (err error) { t.Shape, err = tensorflowShape(f.body); return err },
					})
				}})
			}
			return nil
		},
	})
	return n, err
}

// readGraphDef reads a frozen graph: its inputs are its placeholders, its outputs what
// nothing else consumes, its weights its constants.
func readGraphDef(r *reading, f *file) error {
	var nodes []node
	consumed := map[string]bool{}
	top := f.message(0, f.size)
	err := graphDef(top, func(n node) error {
		if n.op == "" {
			return errors.New("a node has no operator: this is no GraphDef")
		}
		if err := r.operator(n.op); err != nil {
			return err
		}
		if n.value != nil && n.op == "Const" && (strings.HasPrefix(n.value.Type, "float") || n.value.Type == "bfloat16") {
			n.value.Name = n.name
			if err := r.addTensor(*n.value); err != nil {
				return err
			}
		}
		for _, input := range n.inputs {
			// "name:1" is the second output, "^name" only an order.
			name, _, _ := strings.Cut(strings.TrimPrefix(input, "^"), ":")
			consumed[name] = true
		}
		n.inputs, n.value = nil, nil
		nodes = append(nodes, n)
		return r.hold(200)
	})
	if err != nil {
		return err
	}
	if len(nodes) == 0 {
		return f.errorf(-1, "%w: it has no nodes", ErrUnknownFormat)
	}
	var version int64
	if err := top.fields(map[protowire.Number]func(field) error{4: func(f field) error {
		return f.body.fields(map[protowire.Number]func(field) error{1: intoInt(&version)})
	}}); err != nil {
		return err
	}
	r.sig.FormatVersion = strconv.FormatInt(version, 10)
	for _, n := range nodes {
		t := Tensor{Name: n.name, Type: tensorflowType(n.dtype), Shape: n.shape}
		switch {
		case n.op == "Placeholder" || n.op == "PlaceholderV2":
			err = r.list(&r.sig.Inputs, t)
		case n.op == "NoOp" || n.op == "Assert" || n.op == "Const" || consumed[n.name]:
		default:
			t.Shape = nil
			err = r.list(&r.sig.Outputs, t)
		}
		if err != nil {
			return err
		}
	}
	r.sig.note("a GraphDef does not name its outputs: these are the nodes that nothing consumes")
	if r.sig.Parameters == nil {
		r.sig.addParameters(0)
	}
	return nil
}
