// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"diwan.dev/diwan/internal/models/onnx"
)

// onnxReader reads a ModelProto.
type onnxReader struct {
	*reading
	f *file
	// initializers are the names of the main graph's weights: in models before IR
	// version 4 they are also among its inputs.
	initializers map[string]bool
	inputs       []Tensor
}

func readONNX(r *reading, f *file) error {
	o := &onnxReader{reading: r, f: f, initializers: map[string]bool{}}
	var version, modelVersion int64
	var producer, producerVersion, domain string
	metadata := map[string]string{}
	graphs := 0
	r.sig.Opsets = map[string]int64{}
	err := f.message(0, f.size).fields(map[protowire.Number]func(field) error{
		1: intoInt(&version),
		2: into(&producer),
		3: into(&producerVersion),
		4: into(&domain),
		5: intoInt(&modelVersion),
		7: func(g field) error {
			if graphs++; graphs > 1 {
				return errors.New("the model has two graphs")
			}
			return o.graph(g.body, true)
		},
		8:  o.opset,
		14: stringMap(metadata),
		25: func(f field) error { return o.localFunction(f.body) },
	})
	if err != nil {
		return err
	}
	if graphs == 0 {
		return f.errorf(-1, "%w: it has no ONNX graph", ErrUnknownFormat)
	}
	for _, t := range o.inputs {
		if !o.initializers[t.Name] {
			r.sig.Inputs = append(r.sig.Inputs, t)
		}
	}
	r.sig.FormatVersion = strconv.FormatInt(version, 10)
	r.sig.Producer = strings.TrimSpace(producer + " " + producerVersion)
	for key, value := range metadata {
		r.sig.setMetadata(key, value)
	}
	r.sig.setMetadata("domain", domain)
	if modelVersion != 0 {
		r.sig.setMetadata("model_version", strconv.FormatInt(modelVersion, 10))
	}
	if r.sig.Parameters == nil {
		r.sig.addParameters(0)
	}
	return nil
}

func (o *onnxReader) opset(f field) error {
	var domain string
	var version int64
	err := f.body.fields(map[protowire.Number]func(field) error{1: into(&domain), 2: intoInt(&version)})
	if err != nil {
		return err
	}
	if domain == "" {
		domain = "ai.onnx"
	}
	o.sig.Opsets[domain] = version
	return o.hold(64)
}

// graph reads a GraphProto: the model's, or one inside a node.
func (o *onnxReader) graph(m message, main bool) error {
	return m.fields(map[protowire.Number]func(field) error{
		1: func(f field) error { return o.node(f.body) },
		5: func(f field) error { return o.initializer(f.body, main) },
		11: func(f field) error {
			if !main {
				return nil
			}
			t, err := o.valueInfo(f.body)
			if err != nil {
				return err
			}
			return o.list(&o.inputs, t)
		},
		12: func(f field) error {
			if !main {
				return nil
			}
			t, err := o.valueInfo(f.body)
			if err != nil {
				return err
			}
			return o.list(&o.sig.Outputs, t)
		},
		15: func(f field) error {
			// A SparseTensorProto: its values count, and its dims are the shape.
			return f.body.fields(map[protowire.Number]func(field) error{1: func(f field) error { return o.initializer(f.body, main) }})
		},
	})
}

// node counts a NodeProto's operator, and reads the graphs in its attributes.
func (o *onnxReader) node(m message) error {
	var operator, domain string
	err := m.fields(map[protowire.Number]func(field) error{
		4: into(&operator),
		7: into(&domain),
		5: func(f field) error {
			return f.body.fields(map[protowire.Number]func(field) error{
				6:  func(f field) error { return o.graph(f.body, false) },
				11: func(f field) error { return o.graph(f.body, false) },
			})
		},
	})
	if err != nil {
		return err
	}
	if domain != "" && domain != "ai.onnx" {
		operator = domain + "." + operator
	}
	o.sig.countOperator(operator)
	return o.hold(64)
}

// localFunction counts the operators of a FunctionProto.
func (o *onnxReader) localFunction(m message) error {
	return m.fields(map[protowire.Number]func(field) error{7: func(f field) error { return o.node(f.body) }})
}

// initializer reads a TensorProto, of which the values are skipped.
func (o *onnxReader) initializer(m message, main bool) error {
	var dims []int64
	var kind, location int64
	var name string
	raw := int64(-1)
	values := int64(0)
	external := map[string]string{}
	err := m.fields(map[protowire.Number]func(field) error{
		1: func(f field) (err error) {
			if len(dims) > 1000 {
				return errors.New("a tensor has more than 1000 dimensions")
			}
			dims, err = f.integers(dims)
			return err
		},
		2:  intoInt(&kind),
		8:  into(&name),
		9:  func(f field) error { raw = f.body.size(); return nil },
		4:  func(f field) error { values = sum(values, f.width()); return nil },
		10: func(f field) error { values = sum(values, f.width()); return nil },
		13: stringMap(external),
		14: intoInt(&location),
	})
	if err != nil {
		return err
	}
	shape := make(Shape, len(dims))
	for i, dim := range dims {
		if dim < 0 {
			return fmt.Errorf("tensor %q has a dimension of %d", name, dim)
		}
		shape[i] = Dim{Size: dim}
	}
	n, err := shape.elements()
	if err != nil {
		return fmt.Errorf("tensor %q: %w", name, err)
	}
	bits, known := onnx.DataType(kind).Bits()
	if !known {
		return fmt.Errorf("tensor %q has the unknown type %d", name, kind)
	}
	size := int64(-1)
	if bits > 0 {
		if n > (1<<62)/bits {
			return fmt.Errorf("tensor %q: the shape %v is larger than any file", name, shape)
		}
		size = (n*bits + 7) / 8
	}
	if raw >= 0 && size >= 0 && raw != size {
		return fmt.Errorf("tensor %q: %s of the shape %v has %d bytes, but %d are stored", name, onnx.DataType(kind), shape, size, raw)
	}
	if location == 1 {
		if err := o.external(name, external, size); err != nil {
			return err
		}
	} else if raw < 0 && (kind == 1 || kind == 11) && values != size {
		// Only these two are stored in the width of their type.
		return fmt.Errorf("tensor %q: %s of the shape %v has %d bytes, but %d are stored", name, onnx.DataType(kind), shape, size, values)
	}
	if main {
		o.initializers[name] = true
		if err := o.hold(64); err != nil {
			return err
		}
	}
	return o.addTensor(Tensor{Name: name, Type: onnx.DataType(kind).String(), Shape: shape})
}

// external checks that the file with a tensor's values is in the model's folder and
// holds them.
func (o *onnxReader) external(name string, entries map[string]string, size int64) error {
	location := entries["location"]
	if location == "" {
		return fmt.Errorf("tensor %q is stored in another file, which is not named", name)
	}
	if !fs.ValidPath(path.Clean(location)) || strings.ContainsAny(location, `\:`) || path.Clean(location) == "." {
		return fmt.Errorf("tensor %q is stored in %q, which leads out of the model's folder", name, location)
	}
	// The data is not read: a model may have thousands of such files.
	location = path.Join(path.Dir(o.f.name), location)
	stored, err := o.stat(location)
	if err != nil {
		return fmt.Errorf("tensor %q: %w", name, err)
	}
	if err := o.hold(64); err != nil {
		return err
	}
	o.addSize(location, stored)
	offset, length := int64(0), size
	for key, value := range map[string]*int64{"offset": &offset, "length": &length} {
		if text, given := entries[key]; given {
			if *value, err = strconv.ParseInt(text, 10, 64); err != nil || *value < 0 {
				return fmt.Errorf("tensor %q: %s of its data is %q", name, key, text)
			}
		}
	}
	if size >= 0 && length != size {
		return fmt.Errorf("tensor %q has %d bytes, its entry says %d", name, size, length)
	}
	if length = max(0, length); offset > stored || length > stored-offset {
		return fmt.Errorf("tensor %q: its %d bytes at %d are beyond the end of %s, which has %d", name, length, offset, location, stored)
	}
	return nil
}

// valueInfo reads a ValueInfoProto.
func (o *onnxReader) valueInfo(m message) (Tensor, error) {
	var t Tensor
	err := m.fields(map[protowire.Number]func(field) error{
		1: into(&t.Name),
		2: func(f field) (err error) { t.Type, t.Shape, err = o.typ(f.body); return err },
	})
	return t, err
}

// typ reads a TypeProto as a type expression and, of a plain tensor, its shape.
func (o *onnxReader) typ(m message) (text string, shape Shape, err error) {
	// nested is the type inside a sequence, a map or an optional.
	nested := func(f field) (string, error) {
		inner, _, err := o.typ(f.body)
		return inner, err
	}
	var of string
	err = m.fields(map[protowire.Number]func(field) error{
		1: func(f field) error {
			text, shape, err = o.tensorType(f.body)
			return err
		},
		8: func(f field) error {
			text, shape, err = o.tensorType(f.body)
			text = "sparse(" + text + ")"
			return err
		},
		4: func(f field) error {
			err := f.body.fields(map[protowire.Number]func(field) error{1: func(f field) (err error) { of, err = nested(f); return err }})
			text = "seq(" + of + ")"
			return err
		},
		9: func(f field) error {
			err := f.body.fields(map[protowire.Number]func(field) error{1: func(f field) (err error) { of, err = nested(f); return err }})
			text = "optional(" + of + ")"
			return err
		},
		5: func(f field) error {
			var key int64
			err := f.body.fields(map[protowire.Number]func(field) error{
				1: intoInt(&key),
				2: func(f field) (err error) { of, err = nested(f); return err },
			})
			text = "map(" + onnx.DataType(key).String() + ", " + of + ")"
			return err
		},
	})
	return text, shape, err
}

func (o *onnxReader) tensorType(m message) (string, Shape, error) {
	var kind int64
	var shape Shape
	err := m.fields(map[protowire.Number]func(field) error{
		1: intoInt(&kind),
		2: func(f field) error {
			shape = Shape{}
			return f.body.fields(map[protowire.Number]func(field) error{1: func(f field) error {
				dim := Unknown
				err := f.body.fields(map[protowire.Number]func(field) error{
					1: func(f field) error {
						if dim.Size = int64(f.number); dim.Size < 0 {
							dim.Size = -1
						}
						return nil
					},
					2: into(&dim.Symbol),
				})
				if err == nil {
					err = o.hold(24)
				}
				shape = append(shape, dim)
				return err
			}})
		},
	})
	return onnx.DataType(kind).String(), shape, err
}
