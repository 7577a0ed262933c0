// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"errors"
	"fmt"
	"math"
	"path"
	"strings"
)

// torchStorages are the classes of PyTorch's storages, by name, with the width of
// their elements in bytes.
var torchStorages = map[string]struct {
	name  string
	width int64
}{
	"FloatStorage": {"float32", 4}, "DoubleStorage": {"float64", 8}, "HalfStorage": {"float16", 2}, "BFloat16Storage": {"bfloat16", 2},
	"LongStorage": {"int64", 8}, "IntStorage": {"int32", 4}, "ShortStorage": {"int16", 2}, "CharStorage": {"int8", 1}, "ByteStorage": {"uint8", 1},
	"BoolStorage": {"bool", 1}, "ComplexFloatStorage": {"complex64", 8}, "ComplexDoubleStorage": {"complex128", 16},
	"QInt8Storage": {"qint8", 1}, "QUInt8Storage": {"quint8", 1}, "QInt32Storage": {"qint32", 4}, "UntypedStorage": {"uint8", 1},
}

// torchWidths are the widths of elements by the names of torch.dtype.
var torchWidths = map[string]int64{
	"float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1,
	"uint16": 2, "uint32": 4, "uint64": 8, "bfloat16": 2, "float16": 2, "float32": 4, "float64": 8,
}

// readTorchScript reads an archive of torch.jit.save: weights from its pickle, the
// arguments of forward from its source text, which is read and not run.
func readTorchScript(r *reading, f *file) error {
	a, root, err := torchArchive(f)
	if err != nil {
		return err
	}
	if a.has(root + "constants.pkl") {
		constants, err := a.open(root + "constants.pkl")
		if err != nil {
			return err
		}
		if _, _, err := r.unpickle(&pickleInput{f: constants}); err != nil {
			return err
		}
	}
	value, err := torchWeights(r, a, root)
	if err != nil {
		return err
	}
	// Its own classes, below __torch__, are compiled from the code in the archive.
	model, _ := value.(*pyObject)
	if model == nil {
		return f.errorf(-1, "its pickle holds no module")
	}
	class, _ := model.class.(pyGlobal)
	r.sig.setMetadata("class", strings.TrimPrefix(class.String(), "__torch__."))
	return forward(r, a, root, class)
}

// readTorchPickle reads what torch.save wrote: an archive, or in old files pickles in a
// row.
func readTorchPickle(r *reading, f *file) error {
	r.sig.note("the format holds objects and weights: no inputs and outputs, unless a module's code tells")
	head, err := f.peek(0, 4)
	if err != nil {
		return err
	}
	if string(head) == "PK\x03\x04" {
		a, root, err := torchArchive(f)
		if err != nil {
			return err
		}
		_, err = torchWeights(r, a, root)
		return err
	}
	// A magic number, a protocol, the system, then the object.
	in := &pickleInput{f: f}
	r.sig.FormatVersion = "legacy"
	for range 3 {
		if _, _, err := r.unpickle(in); err != nil {
			return err
		}
	}
	m, value, err := r.unpickle(in)
	if err != nil {
		return err
	}
	t := &torchReader{r: r, m: m, seen: map[*pyObject]bool{}}
	return t.tensors("", value, 1)
}

// torchArchive opens an archive and finds the folder in which everything is.
func torchArchive(f *file) (*archive, string, error) {
	a, err := f.archive()
	if err != nil {
		return nil, "", err
	}
	for _, name := range a.names() {
		if dir, base := path.Split(name); base == "data.pkl" && strings.Count(dir, "/") <= 1 {
			if a.has(dir + "version") {
				version, err := a.open(dir + "version")
				if err != nil {
					return nil, "", err
				}
				text, err := version.text(0, min(version.size, 20), "the version")
				if err != nil {
					return nil, "", err
				}
				f.r.sig.FormatVersion = strings.TrimSpace(strings.ToValidUTF8(text, ""))
			}
			return a, dir, nil
		}
	}
	return nil, "", f.errorf(-1, "the archive has no data.pkl")
}

// torchWeights lists the tensors of an archive's pickle.
func torchWeights(r *reading, a *archive, root string) (pyValue, error) {
	data, err := a.open(root + "data.pkl")
	if err != nil {
		return nil, err
	}
	m, value, err := r.unpickle(&pickleInput{f: data})
	if err != nil {
		return nil, err
	}
	t := &torchReader{r: r, m: m, a: a, root: root, seen: map[*pyObject]bool{}}
	return value, data.fail(-1, t.tensors("", value, 1))
}

// torchReader finds the tensors among the objects of a pickle.
type torchReader struct {
	r    *reading
	m    *pickleMachine
	a    *archive
	root string
	// seen are objects that were listed: weights that are shared count once.
	seen map[*pyObject]bool
}

// hidden are attributes of modules that are no part of a weight's name.
var hidden = map[string]bool{"_parameters": true, "_buffers": true, "_modules": true}

func (t *torchReader) tensors(name string, v pyValue, depth int) error {
	if err := t.m.nest(depth); err != nil {
		return err
	}
	if err := t.m.visit(); err != nil {
		return err
	}
	in := func(key pyValue, v pyValue) error {
		switch v.(type) {
		case *pyObject, *pyDict, *pyList, *pyTuple:
		default:
			return nil
		}
		text := fmt.Sprint(key)
		if hidden[text] {
			return t.tensors(name, v, depth+1)
		}
		if err := t.m.hold(int64(len(name) + len(text))); err != nil {
			return err
		}
		if name != "" {
			text = name + "." + text
		}
		return t.tensors(text, v, depth+1)
	}
	dict := func(d *pyDict) error {
		for i, key := range d.keys {
			switch key.(type) {
			case string, int64:
				if err := in(key, d.values[i]); err != nil {
					return err
				}
			}
		}
		return nil
	}
	list := func(items []pyValue) error {
		for i, item := range items {
			if err := in(int64(i), item); err != nil {
				return err
			}
		}
		return nil
	}
	switch v := v.(type) {
	case *pyDict:
		return dict(v)
	case *pyList:
		return list(v.items)
	case *pyTuple:
		return list(v.items)
	case *pyObject:
		if t.seen[v] {
			return nil
		}
		t.seen[v] = true
		class, _ := v.class.(pyGlobal)
		args, _ := v.args.(*pyTuple)
		switch {
		case strings.HasPrefix(class.name, "_rebuild_tensor") || class.name == "_rebuild_qtensor":
			return t.tensor(name, v)
		case strings.HasPrefix(class.name, "_rebuild_parameter") && args != nil && len(args.items) > 0:
			return t.tensors(name, args.items[0], depth+1)
		}
		if err := dict(&v.dict); err != nil {
			return err
		}
		if state, ok := v.state.(*pyDict); ok {
			return dict(state)
		}
		return list(v.items.items)
	}
	return nil
}

// tensor reads _rebuild_tensor_v2(storage, offset, size, stride, …) and checks that
// the storage holds it.
func (t *torchReader) tensor(name string, v *pyObject) error {
	args, _ := v.args.(*pyTuple)
	if args == nil || len(args.items) < 4 {
		return fmt.Errorf("the tensor %q is rebuilt from something else", name)
	}
	storage, _ := args.items[0].(*pyObject)
	if storage == nil || !storage.persistent {
		return fmt.Errorf("the tensor %q has no storage", name)
	}
	// ("storage", class, key, device, number of elements).
	id, _ := storage.args.(*pyTuple)
	if id == nil || len(id.items) < 5 {
		return fmt.Errorf("the tensor %q has a storage without a key", name)
	}
	class, _ := id.items[1].(pyGlobal)
	key, _ := id.items[2].(string)
	stored, ok := id.items[4].(int64)
	kind, known := torchStorages[class.name]
	if !ok || stored < 0 || !known {
		return fmt.Errorf("the tensor %q has the unknown storage %v of %v elements", name, class, id.items[4])
	}
	if class.name == "UntypedStorage" && len(args.items) > 6 {
		// Version 3, for types that have no storage class.
		if dtype, ok := args.items[6].(pyGlobal); ok {
			if width := torchWidths[dtype.name]; width > 0 {
				kind.name, kind.width = dtype.name, width
				stored /= width
			}
		}
	}
	offset, ok := args.items[1].(int64)
	shape, err := t.m.shape(args.items[2])
	if err != nil || !ok || offset < 0 {
		return fmt.Errorf("the tensor %q: %w", name, errors.Join(err, badOffset(ok && offset >= 0)))
	}
	strides, _ := args.items[3].(*pyTuple)
	if strides == nil || len(strides.items) != len(shape) {
		return fmt.Errorf("the tensor %q has %d dimensions and not as many strides", name, len(shape))
	}
	if _, err := shape.elements(); err != nil {
		return fmt.Errorf("the tensor %q: %w", name, err)
	}
	last, empty := offset, false
	for i, dim := range shape {
		stride, ok := strides.items[i].(int64)
		if !ok || stride < 0 {
			return fmt.Errorf("the tensor %q has the stride %v", name, strides.items[i])
		}
		if dim.Size == 0 {
			empty = true
			continue
		}
		if stride > 0 && dim.Size-1 > (math.MaxInt64-last)/stride {
			return fmt.Errorf("the tensor %q of the shape %v is outside of its storage", name, shape)
		}
		last += (dim.Size - 1) * stride
	}
	if !empty && last >= stored {
		return fmt.Errorf("the tensor %q of the shape %v is outside of its storage of %d elements", name, shape, stored)
	}
	if t.a != nil {
		member, ok := t.a.members[t.root+"data/"+key]
		if !ok {
			return fmt.Errorf("the data of the tensor %q, %sdata/%s, is not in the archive", name, t.root, key)
		}
		if stored > member.unpacked/kind.width {
			return fmt.Errorf("the tensor %q has a storage of %d elements of %s, but %d bytes are stored", name, stored, kind.name, member.unpacked)
		}
	}
	return t.r.addTensor(Tensor{Name: name, Type: kind.name, Shape: shape})
}

func badOffset(good bool) error {
	if good {
		return nil
	}
	return errors.New("its offset is no number")
}

// longSource is how much of a class's source text is looked through, in bytes.
const longSource = 8 << 20

// forward finds the arguments of forward in the source text of a class.
func forward(r *reading, a *archive, root string, class pyGlobal) error {
	name := root + "code/" + strings.ReplaceAll(class.module, ".", "/") + ".py"
	if !a.has(name) {
		r.sig.note("the archive has no code of %s", class)
		return nil
	}
	f, err := a.open(name)
	if err != nil {
		return err
	}
	if f.size > longSource {
		r.sig.note("the code of %s is longer than %d bytes: inputs and outputs were not looked for", class, longSource)
		return nil
	}
	source, err := f.text(0, f.size, "the code")
	if err != nil {
		return err
	}
	_, body, found := strings.Cut("\n"+source, "\nclass "+class.name+"(")
	body, _, _ = strings.Cut(body, "\nclass ")
	_, declaration, hasForward := strings.Cut(body, "\n  def forward(")
	arguments, rest, complete := strings.Cut(declaration, ") -> ")
	if !found || !hasForward || !complete {
		r.sig.note("%s has no method forward", class)
		return nil
	}
	result, _, _ := strings.Cut(rest, ":\n")
	for i, argument := range split(arguments) {
		if i == 0 {
			continue // self
		}
		name, kind, _ := strings.Cut(argument, ":")
		if err := r.list(&r.sig.Inputs, Tensor{Name: strings.TrimSpace(name), Type: scriptType(kind)}); err != nil {
			return err
		}
	}
	outputs := []string{result}
	if tuple, ok := strings.CutPrefix(strings.TrimSpace(result), "Tuple["); ok {
		outputs = split(strings.TrimSuffix(tuple, "]"))
	}
	for i, kind := range outputs {
		if err := r.list(&r.sig.Outputs, Tensor{Name: fmt.Sprintf("output_%d", i), Type: scriptType(kind)}); err != nil {
			return err
		}
	}
	return nil
}

// split cuts a list at its commas, but not within brackets.
func split(text string) []string {
	var parts []string
	depth, start := 0, 0
	for i, c := range text {
		switch c {
		case '[', '(':
			depth++
		case ']', ')':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, text[start:i])
				start = i + 1
			}
		}
	}
	if last := text[start:]; strings.TrimSpace(last) != "" {
		parts = append(parts, last)
	}
	return parts
}

// scriptType is a type of TorchScript; that of a tensor's elements is not told.
func scriptType(text string) string {
	text, _, _ = strings.Cut(text, "=") // a default
	if text = strings.TrimSpace(text); text == "Tensor" {
		return ""
	}
	return text
}
