// SPDX-License-Identifier: Apache-2.0

package onnx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"diwan.dev/diwan/internal/models/protofield"
)

// File is a model in a file. Its tensors' values are read from the file until it is closed.
type File struct {
	*Model
	// Size is the number of bytes of the model's file and of what its tensors have in others.
	Size int64

	file *os.File
	dir  *os.Root
}

// Close closes the file.
func (f *File) Close() error { return errors.Join(f.file.Close(), f.dir.Close()) }

// Open reads the model in a file. Tensors may have their values in other files of its folder.
func Open(ctx context.Context, path string) (_ *File, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	m, external, err := read(ctx, file, info.Size(), dir)
	if err != nil {
		dir.Close()
		return nil, fmt.Errorf("read the ONNX model %s: %w", path, err)
	}
	return &File{m, info.Size() + external, file, dir}, nil
}

// Read reads a model of size bytes, of which all is in r.
func Read(ctx context.Context, r io.ReaderAt, size int64) (*Model, error) {
	m, _, err := read(ctx, r, size, nil)
	return m, err
}

// decoder reads a ModelProto.
type decoder struct {
	reader
	dir      *os.Root // of the files beside the model, nil if there are none
	external int64    // bytes in these
}

func read(ctx context.Context, r io.ReaderAt, size int64, dir *os.Root) (*Model, int64, error) {
	d := &decoder{reader: reader{ctx: ctx, memory: maxMemory}, dir: dir}
	m, err := d.model(section{r, 0, size})
	return m, d.external, err
}

func (d *decoder) model(s section) (*Model, error) {
	m := &Model{}
	err := d.each(s, func(f field) error {
		switch f.num {
		case 1:
			return d.integer(&m.IRVersion, f)
		case 7:
			if m.Graph != nil {
				return errors.New("the model has two graphs")
			}
			payload, err := message(f)
			if err != nil {
				return err
			}
			m.Graph, err = d.graph(payload, 0)
			return err
		case 8:
			payload, err := message(f)
			if err != nil {
				return err
			}
			var o Opset
			err = d.each(payload, func(f field) error {
				switch f.num {
				case 1:
					return d.text(&o.Domain, f)
				case 2:
					return d.integer(&o.Version, f)
				}
				return nil
			})
			m.Opsets = append(m.Opsets, o)
			return errors.Join(err, d.hold(32))
		}
		return d.keep(&m.other, f)
	})
	if err != nil {
		return nil, err
	}
	if m.Graph == nil {
		return nil, errors.New("it has no graph: this is no ONNX model")
	}
	return m, m.Graph.unique()
}

// unique checks that no two initializers have a name.
func (g *Graph) unique() error {
	seen := make(map[string]bool, len(g.Initializers))
	for _, t := range g.Initializers {
		if seen[t.Name] {
			return fmt.Errorf("two initializers are named %q", t.Name)
		}
		seen[t.Name] = true
	}
	return nil
}

func (d *decoder) graph(s section, depth int) (*Graph, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("graphs are nested more than %d deep", maxDepth)
	}
	g := &Graph{}
	err := d.each(s, func(f field) error {
		switch f.num {
		case 1, 5, 11, 12, 13, 15:
		default:
			return d.keep(&g.other, f)
		}
		payload, err := message(f)
		if err != nil {
			return err
		}
		if err := d.hold(128); err != nil {
			return err
		}
		switch f.num {
		case 1:
			data, err := d.bytes(payload)
			if err != nil {
				return err
			}
			n, err := d.node(inMemory(data), depth)
			g.Nodes = append(g.Nodes, n)
			return err
		case 5:
			t, err := d.tensor(payload)
			g.Initializers = append(g.Initializers, t)
			return err
		case 15:
			name, err := d.sparse(payload)
			g.sparse = append(g.sparse, name)
			return errors.Join(err, d.keep(&g.other, f))
		}
		v, err := d.valueInfo(payload)
		list := map[protowire.Number]*[]*ValueInfo{11: &g.Inputs, 12: &g.Outputs, 13: &g.ValueInfos}[f.num]
		*list = append(*list, v)
		return err
	})
	return g, err
}

// sparse reads the name of a SparseTensorProto.
func (d *decoder) sparse(s section) (name string, err error) {
	err = d.inside(func() error {
		return d.each(s, func(f field) error {
			if f.num > 2 {
				return nil
			}
			payload, err := message(f)
			if err != nil {
				return err
			}
			t, err := d.tensor(payload) // 1 are the values, 2 their places
			if err == nil && f.num == 1 {
				name = t.Name
			}
			return err
		})
	})
	return name, err
}

// inside calls read for what is written as it was read, and so cannot have values in other files.
func (d *decoder) inside(read func() error) error {
	dir := d.dir
	d.dir = nil
	defer func() { d.dir = dir }()
	return read()
}

func (d *decoder) node(s section, depth int) (*Node, error) {
	n := &Node{}
	list := func(to *[]string, f field) error {
		var name string
		err := errors.Join(d.text(&name, f), d.hold(16))
		*to = append(*to, name)
		return err
	}
	err := d.each(s, func(f field) error {
		switch f.num {
		case 1:
			return list(&n.Inputs, f)
		case 2:
			return list(&n.Outputs, f)
		case 3:
			return d.text(&n.Name, f)
		case 4:
			return d.text(&n.Op, f)
		case 5:
			payload, err := message(f)
			if err != nil {
				return err
			}
			a, err := d.attribute(payload, depth)
			n.Attributes = append(n.Attributes, a)
			return errors.Join(err, d.hold(128))
		case 7:
			return d.text(&n.Domain, f)
		}
		return d.keep(&n.other, f)
	})
	if err != nil {
		return nil, fmt.Errorf("node %q (%s): %w", n.Name, n.Op, err)
	}
	return n, nil
}

func (d *decoder) attribute(s section, depth int) (a Attribute, err error) {
	if a.raw, err = d.bytes(s); err != nil {
		return a, err
	}
	graph := func(f field) error {
		payload, err := message(f)
		if err != nil {
			return err
		}
		g, err := d.graph(payload, depth+1)
		a.Graphs = append(a.Graphs, g)
		return err
	}
	err = d.inside(func() error {
		return d.each(inMemory(a.raw), func(f field) error {
			switch f.num {
			case 1:
				return d.text(&a.Name, f)
			case 2:
				return d.float(&a.Float, f)
			case 3:
				return d.integer(&a.Int, f)
			case 5:
				payload, err := message(f)
				if err != nil {
					return err
				}
				a.Tensor, err = d.tensor(payload)
				return err
			case 6, 11:
				return graph(f)
			case 8:
				return d.integers(&a.Ints, f)
			}
			return nil
		})
	})
	if err != nil {
		return a, fmt.Errorf("attribute %q: %w", a.Name, err)
	}
	return a, nil
}

// tensor reads a TensorProto, of which the values stay where they are.
func (d *decoder) tensor(s section) (*Tensor, error) {
	t := &Tensor{}
	var kind, location int64
	var raw, packed *section
	var loose []byte
	var entries []field
	err := d.each(s, func(f field) error {
		switch f.num {
		case 1:
			if len(t.Dims) > maxRank {
				return fmt.Errorf("it has more than %d dimensions", maxRank)
			}
			return d.integers(&t.Dims, f)
		case 2:
			return d.integer(&kind, f)
		case 4:
			if f.typ == protowire.BytesType && packed == nil && loose == nil {
				packed = &f.payload
				return nil
			}
			// Not packed, or in several pieces.
			if packed != nil {
				b, err := d.bytes(*packed)
				if err != nil {
					return err
				}
				packed, loose = nil, b
			}
			value := f.payload
			if f.typ == protowire.Fixed32Type {
				value = section{f.whole.r, f.whole.at + f.whole.n - 4, 4}
			} else if f.typ != protowire.BytesType {
				return fmt.Errorf("%w: field %d is no float", protofield.ErrWire, f.num)
			}
			b, err := d.bytes(value)
			loose = append(loose, b...)
			return err
		case 8:
			return d.text(&t.Name, f)
		case 9:
			payload, err := message(f)
			raw = &payload
			return err
		case 13:
			entries = append(entries, f)
			return d.hold(128)
		case 14:
			return d.integer(&location, f)
		}
		return d.keep(&t.other, f)
	})
	if err == nil {
		t.Type = DataType(kind)
		err = d.values(t, location == 1, entries, raw, packed, loose)
	}
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	return t, nil
}

// values finds a tensor's values and checks that they fill its shape.
func (d *decoder) values(t *Tensor, external bool, entries []field, raw, packed *section, loose []byte) error {
	size, err := t.size()
	if err != nil {
		return err
	}
	switch {
	case raw != nil && (packed != nil || loose != nil):
		return errors.New("it has its values twice")
	case external:
		where, err := d.where(entries)
		if err != nil {
			return err
		}
		if size < 0 {
			return fmt.Errorf("values of the type %s cannot be in another file", t.Type)
		}
		t.Values, err = d.beside(where, size)
		if err != nil {
			return err
		}
		d.external += t.Values.Size()
	case raw != nil:
		t.Values = *raw
	case packed != nil:
		t.Values = *packed
	case loose != nil:
		t.Values = Bytes(loose)
	case size == 0 || t.Type == Float32 && len(t.other) == 0:
		t.Values = Bytes(nil)
	}
	if t.Values != nil && size < 0 {
		return fmt.Errorf("values of the type %s cannot be stored as bytes", t.Type)
	}
	if t.Values != nil && t.Values.Size() != size {
		return fmt.Errorf("%s of the shape %v has %d bytes, but %d are stored", t.Type, t.Dims, size, t.Values.Size())
	}
	return nil
}

// size is the number of bytes of the values, -1 for strings.
func (t *Tensor) size() (int64, error) {
	bits, known := t.Type.Bits()
	if !known {
		return 0, fmt.Errorf("it has the unknown type %d", int64(t.Type))
	}
	n := int64(1)
	for _, dim := range t.Dims {
		if dim < 0 {
			return 0, fmt.Errorf("it has a dimension of %d", dim)
		}
		if dim > 0 && n > (1<<55)/dim {
			return 0, fmt.Errorf("the shape %v is larger than any file", t.Dims)
		}
		n *= dim
	}
	if bits == 0 {
		return -1, nil
	}
	return (n*bits + 7) / 8, nil
}

// where reads where external values are.
func (d *decoder) where(entries []field) (map[string]string, error) {
	where := map[string]string{}
	for _, f := range entries {
		payload, err := message(f)
		if err != nil {
			return nil, err
		}
		var key, value string
		err = d.each(payload, func(f field) error {
			switch f.num {
			case 1:
				return d.text(&key, f)
			case 2:
				return d.text(&value, f)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		where[key] = value
	}
	return where, nil
}

// beside finds values in a file of the model's folder.
func (d *decoder) beside(where map[string]string, size int64) (Values, error) {
	location := filepath.FromSlash(where["location"])
	switch {
	case location == "":
		return nil, errors.New("its values are in another file, which is not named")
	case d.dir == nil:
		return nil, fmt.Errorf("its values are in %q, but only initializers of the main graph can be outside of the model's file: save the model in one file", location)
	case !filepath.IsLocal(location):
		return nil, fmt.Errorf("its values are in %q, which leads out of the model's folder", location)
	}
	// A root refuses links that lead out of it.
	info, err := d.dir.Stat(location)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("its values are in %s, which is not beside the model: put it there", location)
	} else if err != nil {
		return nil, fmt.Errorf("its values are in %q: %w", location, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("its values are in %s, which is not a file", location)
	}
	offset, length := int64(0), size
	for key, value := range map[string]*int64{"offset": &offset, "length": &length} {
		if text, given := where[key]; given {
			if *value, err = strconv.ParseInt(text, 10, 64); err != nil || *value < 0 {
				return nil, fmt.Errorf("the %s of its values in %s is %q", key, location, text)
			}
		}
	}
	if length != size {
		return nil, fmt.Errorf("it has %d bytes, but its entry says %d", size, length)
	}
	if offset > info.Size() || size > info.Size()-offset {
		return nil, fmt.Errorf("its %d bytes at %d are beyond the end of %s, which has %d", size, offset, location, info.Size())
	}
	return outside{d.dir, location, offset, size}, d.hold(64)
}

// outside are values in another file, which is opened when it is read: a model may have thousands.
type outside struct {
	dir      *os.Root
	location string
	offset   int64
	size     int64
}

func (o outside) Size() int64 { return o.size }

func (o outside) WriteTo(w io.Writer) (int64, error) {
	file, err := o.dir.Open(o.location)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return section{file, o.offset, o.size}.WriteTo(w)
}

func (d *decoder) valueInfo(s section) (*ValueInfo, error) {
	v := &ValueInfo{}
	var err error
	if v.raw, err = d.bytes(s); err != nil {
		return nil, err
	}
	err = d.each(inMemory(v.raw), func(f field) error {
		switch f.num {
		case 1:
			return d.text(&v.Name, f)
		case 2:
			return d.within(f, 1, func(f field) error { // TypeProto, of which 1 is tensor_type
				return d.within(f, 1, func(f field) error { // of which 1 is elem_type
					var kind int64
					err := d.integer(&kind, f)
					v.Type = DataType(kind)
					return err
				})
			})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("value %q: %w", v.Name, err)
	}
	return v, nil
}

// within calls visit for the fields of a number in a message.
func (d *decoder) within(f field, num protowire.Number, visit func(field) error) error {
	payload, err := message(f)
	if err != nil {
		return err
	}
	return d.each(payload, func(f field) error {
		if f.num != num {
			return nil
		}
		return visit(f)
	})
}
