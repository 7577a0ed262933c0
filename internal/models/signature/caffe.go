// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// readCaffe reads a network in text (.prototxt) or its weights (.caffemodel) with the
// network of the same name, or deploy.prototxt, beside it.
// https://github.com/BVLC/caffe/blob/master/src/caffe/proto/caffe.proto
func readCaffe(r *reading, f *file) error {
	if strings.HasSuffix(strings.ToLower(f.name), ".prototxt") {
		return caffeText(r, f)
	}
	net := &caffeNet{consumed: map[string]bool{}}
	if err := net.weights(r, f); err != nil {
		return err
	}
	if r.sig.Parameters == nil {
		r.sig.addParameters(0)
	}
	stem := strings.TrimSuffix(path.Base(f.name), path.Ext(f.name))
	for _, name := range []string{stem + ".prototxt", "deploy.prototxt"} {
		name = path.Join(path.Dir(f.name), name)
		if _, err := fs.Stat(r.fsys, name); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		text, err := r.file(name)
		if err != nil {
			return err
		}
		r.addFile(text)
		r.sig.Operators = nil
		return text.fail(-1, caffeText(r, text))
	}
	r.sig.note("there is no deploy.prototxt beside it: inputs and outputs are those of training")
	return net.ends(r)
}

// caffeNet collects the ends of a network: a layer has blobs at its bottom and top.
type caffeNet struct {
	inputs   []Tensor
	tops     []string
	consumed map[string]bool
}

// layer adds a layer.
func (n *caffeNet) layer(r *reading, kind string, bottoms, tops []string, shapes []Shape) error {
	if err := r.operator(kind); err != nil {
		return err
	}
	for _, name := range bottoms {
		n.consumed[name] = true
	}
	for i, name := range tops {
		if err := r.hold(80); err != nil {
			return err
		}
		if len(bottoms) > 0 {
			n.tops = append(n.tops, name)
			continue
		}
		t := Tensor{Name: name, Type: "float32"}
		if i < len(shapes) {
			t.Shape = shapes[i]
		} else if len(shapes) == 1 {
			t.Shape = shapes[0]
		}
		n.inputs = append(n.inputs, t)
	}
	return nil
}

// ends are the inputs, and as outputs the blobs that no other layer consumes.
func (n *caffeNet) ends(r *reading) error {
	for _, t := range n.inputs {
		if err := r.list(&r.sig.Inputs, t); err != nil {
			return err
		}
	}
	listed := map[string]bool{}
	for _, name := range n.tops {
		if n.consumed[name] || listed[name] {
			continue
		}
		listed[name] = true
		if err := r.list(&r.sig.Outputs, Tensor{Name: name, Type: "float32"}); err != nil {
			return err
		}
	}
	return nil
}

// caffeText reads a network in text.
func caffeText(r *reading, f *file) error {
	message, err := f.prototext()
	if err != nil {
		return err
	}
	net := &caffeNet{consumed: map[string]bool{}}
	r.sig.setMetadata("name", message.text("name"))
	var shapes []Shape
	for _, shape := range message.messages("input_shape") {
		s, err := textShape(shape.texts("dim"))
		if err != nil {
			return err
		}
		shapes = append(shapes, s)
	}
	// Before input_shape: four dimensions for each input.
	for dims := message.texts("input_dim"); len(dims) >= 4; dims = dims[4:] {
		s, err := textShape(dims[:4])
		if err != nil {
			return err
		}
		shapes = append(shapes, s)
	}
	for i, name := range message.texts("input") {
		t := Tensor{Name: name, Type: "float32"}
		if i < len(shapes) {
			t.Shape = shapes[i]
		}
		net.inputs = append(net.inputs, t)
	}
	layers := append(message.messages("layer"), message.messages("layers")...)
	for _, layer := range layers {
		var shapes []Shape
		for _, param := range layer.messages("input_param") {
			for _, shape := range param.messages("shape") {
				s, err := textShape(shape.texts("dim"))
				if err != nil {
					return err
				}
				shapes = append(shapes, s)
			}
		}
		bottoms, tops := layer.texts("bottom"), layer.texts("top")
		// In place: the blob comes out again, and counts as an output only if nothing else takes it.
		for _, top := range tops {
			bottoms = remove(bottoms, top)
		}
		if len(bottoms) == 0 && len(layer.texts("bottom")) > 0 {
			if err := r.operator(layer.text("type")); err != nil {
				return err
			}
			continue
		}
		if err := net.layer(r, layer.text("type"), bottoms, tops, shapes); err != nil {
			return err
		}
	}
	if len(layers) == 0 && len(net.inputs) == 0 {
		return f.errorf(-1, "%w: it has no layers", ErrUnknownFormat)
	}
	return net.ends(r)
}

func remove(from []string, text string) []string {
	var kept []string
	for _, item := range from {
		if item != text {
			kept = append(kept, item)
		}
	}
	return kept
}

func textShape(dims []string) (Shape, error) {
	shape := Shape{}
	for _, text := range dims {
		n, ok := getInt(number(text))
		if !ok || n < -1 {
			return nil, fmt.Errorf("a dimension is %.40q", text)
		}
		shape = append(shape, Dim{Size: n})
	}
	return shape, nil
}

// weights reads a NetParameter with layers of either generation.
func (n *caffeNet) weights(r *reading, f *file) error {
	var name string
	layers := 0
	layer := func(blobs, kind, bottom, top, label protowire.Number) func(field) error {
		return func(f field) error {
			layers++
			var op, layerName string
			var bottoms, tops []string
			var shapes []message
			texts := func(to *[]string) func(field) error {
				return func(f field) error {
					text, err := f.text()
					*to = append(*to, text)
					return errors.Join(err, r.hold(16))
				}
			}
			err := f.body.fields(map[protowire.Number]func(field) error{
				label: into(&layerName),
				kind: func(f field) (err error) {
					if f.typ != protowire.BytesType {
						op = fmt.Sprintf("V1(%d)", f.number)
						return nil
					}
					op, err = f.text()
					return err
				},
				bottom: texts(&bottoms),
				top:    texts(&tops),
				blobs: func(f field) error {
					shapes = append(shapes, f.body)
					return r.hold(64)
				},
			})
			if err != nil {
				return err
			}
			for i, blob := range shapes {
				t, err := caffeBlob(blob)
				if err != nil {
					return fmt.Errorf("layer %q: %w", layerName, err)
				}
				t.Name = fmt.Sprintf("%s.%d", layerName, i)
				if err := r.addTensor(t); err != nil {
					return err
				}
			}
			return n.layer(r, op, bottoms, tops, nil)
		}
	}
	err := f.message(0, f.size).fields(map[protowire.Number]func(field) error{
		1:   into(&name),
		2:   layer(6, 5, 2, 3, 4),
		100: layer(7, 2, 3, 4, 1),
	})
	if err != nil {
		return err
	}
	if layers == 0 {
		return f.errorf(-1, "%w: it has no layers of Caffe", ErrUnknownFormat)
	}
	r.sig.setMetadata("name", name)
	return nil
}

// caffeBlob reads the shape of a BlobProto and checks that it has as many numbers.
func caffeBlob(m message) (Tensor, error) {
	t := Tensor{Type: "float32"}
	old := [4]int64{-1, -1, -1, -1}
	stored := int64(0)
	var dims []int64
	err := m.fields(map[protowire.Number]func(field) error{
		1: intoInt(&old[0]), 2: intoInt(&old[1]), 3: intoInt(&old[2]), 4: intoInt(&old[3]),
		5: func(f field) error { stored = sum(stored, f.width()/4); return nil },
		8: func(f field) error {
			t.Type = "float64"
			stored = sum(stored, f.width()/8)
			return nil
		},
		7: func(f field) error {
			return f.body.fields(map[protowire.Number]func(field) error{1: func(f field) (err error) {
				if len(dims) > 32 {
					return errors.New("a blob has more than 32 dimensions")
				}
				dims, err = f.integers(dims)
				return err
			}})
		},
	})
	if err != nil {
		return t, err
	}
	if dims == nil {
		for _, n := range old {
			if n >= 0 {
				dims = append(dims, n)
			}
		}
	}
	t.Shape = Fixed(dims...)
	n, err := t.Shape.elements()
	if err != nil {
		return t, err
	}
	if n != stored {
		return t, fmt.Errorf("a blob of the shape %v has %d numbers", t.Shape, stored)
	}
	return t, nil
}
