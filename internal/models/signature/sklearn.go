// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bufio"
	"compress/bzip2"
	"compress/gzip"
	"compress/zlib"
	"io"
	"strings"
)

// readSklearn reads a pickle, a joblib file, or an archive of skops. What is no
// scikit-learn estimator becomes the format Pickle.
func readSklearn(r *reading, f *file) error {
	head, err := f.peek(0, 8)
	if err != nil {
		return err
	}
	if strings.HasPrefix(string(head), "PK\x03\x04") {
		return readSkops(r, f)
	}
	in, err := f.unpacked(head)
	if err != nil {
		return err
	}
	m, root, err := r.unpickle(in)
	if err != nil {
		return err
	}
	r.sig.note("a pickle runs code when it is loaded: load only those of people whom you trust")
	return describeEstimator(r, m, root)
}

// unpacked is a pickle as it is, or as the stream that joblib compressed.
func (f *file) unpacked(head []byte) (*pickleInput, error) {
	var unpack io.Reader
	var err error
	packed := bufio.NewReaderSize(io.NewSectionReader(f.at, 0, f.size), 64<<10)
	switch text := string(head); {
	case strings.HasPrefix(text, "\x78") && len(text) > 1 && (int(text[0])<<8|int(text[1]))%31 == 0:
		unpack, err = zlib.NewReader(packed)
		f.r.sig.setMetadata("compression", "zlib")
	case strings.HasPrefix(text, "\x1f\x8b"):
		unpack, err = gzip.NewReader(packed)
		f.r.sig.setMetadata("compression", "gzip")
	case strings.HasPrefix(text, "BZh"):
		unpack = bzip2.NewReader(packed)
		f.r.sig.setMetadata("compression", "bzip2")
	case strings.HasPrefix(text, "\xfd7zXZ"), strings.HasPrefix(text, "\x5d\x00\x00"):
		return nil, f.errorf(0, "%w: it is compressed with LZMA; save it again with compress=('zlib', 3)", ErrUnsupported)
	case strings.HasPrefix(text, "\x04\x22\x4d\x18"):
		return nil, f.errorf(0, "%w: it is compressed with LZ4; save it again with compress=('zlib', 3)", ErrUnsupported)
	case strings.HasPrefix(text, "\x28\xb5\x2f\xfd"):
		return nil, f.errorf(0, "%w: it is compressed with Zstandard", ErrUnsupported)
	case strings.HasPrefix(text, "ZF"):
		return nil, f.errorf(0, "%w: joblib before 0.10 wrote it; load it with that and save it again", ErrUnsupported)
	default:
		return &pickleInput{f: f}, nil
	}
	if err != nil {
		return nil, f.errorf(0, "cannot unpack it: %w", err)
	}
	return &pickleInput{f: f, stream: bufio.NewReaderSize(&inflated{f.r, unpack}, windowSize)}, nil
}

// inflated charges what is read to the limit Inflated.
type inflated struct {
	r  *reading
	in io.Reader
}

func (s *inflated) Read(p []byte) (int, error) {
	n, err := s.in.Read(p)
	if spent := s.r.inflate(int64(n)); spent != nil {
		return 0, spent
	}
	return n, err
}

// inspector describes estimators from the objects of a pickle.
type inspector struct {
	r *reading
	m *pickleMachine
}

// describeEstimator fills the signature from the root object of a pickle.
func describeEstimator(r *reading, m *pickleMachine, root pyValue) error {
	i := inspector{r, m}
	r.sig.Format = Pickle
	if object, ok := root.(*pyObject); ok && isEstimator(object) {
		estimator, err := i.estimator("", object, 1)
		if err != nil {
			return err
		}
		r.sig.Estimator = &estimator
		if strings.HasPrefix(estimator.Class, "sklearn.") {
			r.sig.Format = Sklearn
		}
		if version, ok := i.first(object, "_sklearn_version", 0).(string); ok {
			r.sig.Producer = "scikit-learn " + version
		}
		i.columns(object)
	} else {
		r.sig.note("the pickle holds %s, no estimator", kindOf(root))
	}
	// A pickle may hold estimators in a dict, say: their library still tells what it is.
	for global := range m.globals {
		if strings.HasPrefix(global.module, "sklearn.") {
			r.sig.Format = Sklearn
		}
	}
	return nil
}

func kindOf(v pyValue) string {
	switch v := v.(type) {
	case *pyObject:
		if class, ok := v.class.(pyGlobal); ok {
			return "an object of " + class.String()
		}
		return "an object"
	case *pyDict:
		return "a dict"
	case *pyList:
		return "a list"
	case *pyTuple:
		return "a tuple"
	case *pyBytes:
		return "bytes"
	case pyGlobal:
		return "the name " + v.String()
	}
	return "a plain value"
}

// isEstimator reports whether an object has a class and attributes of its own.
func isEstimator(object *pyObject) bool {
	class, ok := object.class.(pyGlobal)
	if !ok || class.module == "" || strings.HasPrefix(class.module, "numpy") || strings.HasPrefix(class.module, "collections") {
		return false
	}
	switch object.state.(type) {
	case *pyDict, *pyTuple:
		return true
	}
	return false
}

// parts are the attributes in which composed estimators keep others: fitted ones first.
var parts = []string{"steps", "transformers_", "transformers", "transformer_list", "named_estimators_", "best_estimator_", "estimator_", "regressor_", "estimator"}

// estimator describes an object and what it is composed of.
func (i inspector) estimator(name string, object *pyObject, depth int) (Estimator, error) {
	if err := i.m.nest(depth * 4); err != nil {
		return Estimator{}, err
	}
	if err := i.m.hold(128); err != nil {
		return Estimator{}, err
	}
	class := i.classOf(object)
	e := Estimator{Name: name, Class: class.String()}
	// Forests hold hundreds of trees, which say no more than their number.
	if strings.Contains(class.module, ".ensemble.") && !strings.Contains(class.name, "Voting") && !strings.Contains(class.name, "Stacking") {
		return e, nil
	}
	for _, part := range i.composed(object) {
		step, err := i.estimator(part.name, part.object, depth+1)
		if err != nil {
			return Estimator{}, err
		}
		e.Steps = append(e.Steps, step)
	}
	return e, nil
}

// classOf is the class of an object: what is called, or what an old class is rebuilt from.
func (i inspector) classOf(object *pyObject) pyGlobal {
	class, _ := object.class.(pyGlobal)
	switch class.String() {
	case "copy_reg._reconstructor", "copyreg._reconstructor", "copyreg.__newobj__", "copy_reg.__newobj__":
		if args, ok := object.args.(*pyTuple); ok && len(args.items) > 0 {
			if inner, ok := args.items[0].(pyGlobal); ok {
				return inner
			}
		}
	}
	return class
}

type namedObject struct {
	name   string
	object *pyObject
}

// composed are the parts of an estimator.
func (i inspector) composed(object *pyObject) []namedObject {
	for _, attribute := range parts {
		var found []namedObject
		switch value := i.m.attribute(object, attribute).(type) {
		case *pyObject:
			if isEstimator(value) && value != object {
				found = append(found, namedObject{attribute, value})
			}
		case *pyList:
			if i.m.visitAll(int64(len(value.items))) != nil {
				return nil
			}
			for _, item := range value.items {
				if tuple, ok := item.(*pyTuple); ok && len(tuple.items) >= 2 {
					name, _ := tuple.items[0].(string)
					if part, ok := tuple.items[1].(*pyObject); ok && isEstimator(part) {
						found = append(found, namedObject{name, part})
					}
				}
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// first is an attribute of an object or of the first of its parts that has it.
func (i inspector) first(object *pyObject, name string, depth int) pyValue {
	if v := i.m.attribute(object, name); v != nil || depth > 10 {
		return v
	}
	for _, part := range i.composed(object) {
		if i.m.visit() != nil {
			return nil
		}
		if v := i.first(part.object, name, depth+1); v != nil {
			return v
		}
	}
	return nil
}

// last is an attribute of an object or of its last part: a pipeline predicts with that.
func (i inspector) last(object *pyObject, name string, depth int) pyValue {
	if v := i.m.attribute(object, name); v != nil || depth > 10 {
		return v
	}
	if parts := i.composed(object); len(parts) > 0 {
		return i.last(parts[len(parts)-1].object, name, depth+1)
	}
	return nil
}

// columns describes inputs, outputs and weights.
func (i inspector) columns(object *pyObject) {
	sig := i.r.sig
	if n, ok := i.first(object, "n_features_in_", 0).(int64); ok && n >= 0 {
		sig.Inputs = []Tensor{{Name: "features", Shape: Fixed(-1, n)}}
	}
	sig.Features = i.m.texts(i.first(object, "feature_names_in_", 0))
	if classes := i.last(object, "classes_", 0); classes != nil {
		sig.Classes = i.m.texts(classes)
		output := Tensor{Name: "prediction", Shape: Fixed(-1)}
		if array := i.m.array(classes); array != nil {
			output.Type = array.kind.name
		}
		sig.Outputs = []Tensor{output}
	}
	i.weights(object, 0)
	if n := len(i.m.trees); n > 0 {
		sig.Trees = &Trees{Count: int64(n), Classes: int64(len(sig.Classes))}
		if len(sig.Inputs) > 0 {
			sig.Trees.Features = sig.Inputs[0].Shape[1].Size
		}
		for _, tree := range i.m.trees {
			if nodes, ok := i.m.attribute(tree, "node_count").(int64); ok && nodes > 0 {
				sig.Trees.Nodes = sum(sig.Trees.Nodes, nodes)
			}
		}
	}
}

// weights counts the coefficients of linear models and networks.
func (i inspector) weights(object *pyObject, depth int) {
	if depth > 10 || i.m.visit() != nil {
		return
	}
	count := func(v pyValue) {
		if array := i.m.array(v); array != nil {
			if n, err := array.shape.elements(); err == nil {
				i.r.sig.addParameters(n)
			}
		}
	}
	for _, name := range []string{"coef_", "intercept_"} {
		count(i.m.attribute(object, name))
	}
	for _, name := range []string{"coefs_", "intercepts_"} {
		if list, ok := i.m.attribute(object, name).(*pyList); ok && i.m.visitAll(int64(len(list.items))) == nil {
			for _, item := range list.items {
				count(item)
			}
		}
	}
	for _, part := range i.composed(object) {
		i.weights(part.object, depth+1)
	}
}
