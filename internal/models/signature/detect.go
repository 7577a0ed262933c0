// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"diwan.dev/diwan/internal/models/protofield"
)

// found is what detection tells: the format, the main file, and whether the model is
// the whole folder.
type found struct {
	format Format
	main   string
	folder bool
}

// detect finds the main file of a model and its format.
func (r *reading) detect(name string) (found, error) {
	if !fs.ValidPath(name) {
		return found{}, &Error{File: name, Offset: -1, Err: errors.New("this path leads out of the model's folder")}
	}
	info, err := fs.Stat(r.fsys, name)
	if err != nil {
		return found{}, &Error{File: name, Offset: -1, Err: err}
	}
	if info.IsDir() {
		return r.detectFolder(name)
	}
	f, err := r.file(name)
	if err != nil {
		return found{}, err
	}
	format, err := f.format()
	if err != nil {
		return found{main: name}, f.fail(-1, err)
	}
	return found{format: format, main: name}, nil
}

// folderFiles are the files by which the model of a folder is known, the surest first.
var folderFiles = []struct {
	match  func(name string) bool
	format Format
	folder bool
}{
	{exactly("MLmodel"), MLflow, true},
	{exactly("saved_model.pb"), SavedModel, true},
	{suffix(".safetensors.index.json"), Safetensors, false},
	{suffix(".safetensors"), Safetensors, false},
	{suffix(".gguf"), GGUF, false},
	{suffix(".onnx"), ONNX, false},
	{suffix(".keras"), Keras, false},
	{suffix("symbol.json"), MXNet, false},
	{suffix(".caffemodel"), Caffe, false},
	{suffix(".pt2"), TorchExport, false},
	{suffix(".plan", ".engine"), TensorRT, false},
	{suffix(".pmml"), PMML, false},
	{suffix(".cbm"), CatBoost, false},
	// These endings are of several formats: the content decides.
	{suffix(".h5", ".hdf5", ".graphdef", ".pt", ".pth", ".ubj", ".xgboost", ".bst", ".joblib", ".pkl", ".pickle", ".skops"), "", false},
	{suffix(".bin", ".pb", ".model", ".lgb", ".txt", ".json"), "", false},
}

func exactly(want string) func(string) bool { return func(name string) bool { return name == want } }

func suffix(endings ...string) func(string) bool {
	return func(name string) bool {
		return slices.ContainsFunc(endings, func(ending string) bool { return strings.HasSuffix(strings.ToLower(name), ending) })
	}
}

// detectFolder finds the one model in a folder.
func (r *reading) detectFolder(dir string) (found, error) {
	fail := func(err error) (found, error) { return found{}, &Error{File: dir, Offset: -1, Err: err} }
	entries, err := readDir(r, dir)
	if err != nil {
		return fail(err)
	}
	for _, kind := range folderFiles {
		var matches []string
		for _, name := range entries {
			if kind.match(name) {
				matches = append(matches, name)
			}
		}
		if kind.format == "" {
			matches = slices.DeleteFunc(matches, func(name string) bool {
				f, err := r.file(path.Join(dir, name))
				if err == nil {
					_, err = f.format()
					r.done(f)
				}
				return errors.Is(err, ErrUnknownFormat)
			})
		}
		if len(matches) == 0 {
			continue
		}
		// The files of a split model are found from its first one.
		if len(matches) > 1 && !(kind.format == GGUF && ggufSplit.MatchString(matches[0])) {
			return fail(fmt.Errorf("it holds several models: %s; name one of them", strings.Join(matches[:min(len(matches), 5)], ", ")))
		}
		main := path.Join(dir, matches[0])
		if kind.format == "" {
			return r.detect(main)
		}
		return found{format: kind.format, main: main, folder: kind.folder}, nil
	}
	return fail(fmt.Errorf("%w: this folder holds no file that is one", ErrUnknownFormat))
}

// readDir is the names of the files in a folder, sorted.
func readDir(r *reading, dir string) ([]string, error) {
	f, err := r.fsys.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lister, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, errors.New("its file system does not list folders")
	}
	var names []string
	for {
		entries, err := lister.ReadDir(1000)
		for _, entry := range entries {
			if !entry.IsDir() {
				names = append(names, entry.Name())
			}
		}
		if int64(len(names)) > r.limits.Files {
			return nil, &LimitError{"Files", r.limits.Files}
		}
		if len(entries) == 0 || err != nil {
			slices.Sort(names)
			if err != nil && !errors.Is(err, io.EOF) {
				return nil, err
			}
			return names, nil
		}
	}
}

// magics are the first bytes of formats.
var magics = []struct {
	bytes  string
	format Format
}{
	{"GGUF", GGUF},
	{"CBM1", CatBoost},
	{"\x89HDF\r\n\x1a\n", KerasH5},
	{"ftrt", TensorRT},
	{"ptrt", TensorRT},
	{"\x12\x01\x00\x00\x00\x00\x00\x00", MXNet}, // a list of arrays, 0x112
	{"tree\n", LightGBM},
	{"tree\r\n", LightGBM},
	{"binf", XGBoost},
	{"bs64", XGBoost},
}

// compressed are the first bytes of what joblib compresses with.
var compressed = []string{"\x1f\x8b", "BZh", "\xfd7zXZ\x00", "\x5d\x00\x00\x80\x00", "\x04\x22\x4d\x18", "\x28\xb5\x2f\xfd", "ZF"}

// format tells the format of a file.
func (f *file) format() (Format, error) {
	head, err := f.peek(0, 4096)
	if err != nil {
		return "", err
	}
	head = bytes.Clone(head)
	if len(head) == 0 {
		return "", fmt.Errorf("%w: the file is empty", ErrUnknownFormat)
	}
	for _, magic := range magics {
		if strings.HasPrefix(string(head), magic.bytes) {
			return magic.format, nil
		}
	}
	ending := strings.ToLower(path.Ext(f.name))
	switch {
	case len(head) >= 9 && head[8] == '{' && little.Uint64(head) <= safetensorsHeader && head[0] != '{':
		return Safetensors, nil
	case ending == ".safetensors":
		return Safetensors, nil
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return f.archiveFormat()
	case len(head) >= 8 && string(head[4:8]) == "TFL3":
		return "", fmt.Errorf("%w: this is a model of TensorFlow Lite", ErrUnsupported)
	case head[0] == 0x80 && len(head) > 1 && head[1] <= 5:
		return f.pickleFormat()
	case head[0] == 0x78 && len(head) > 1 && (int(head[0])<<8|int(head[1]))%31 == 0:
		return Sklearn, nil
	case slices.ContainsFunc(compressed, func(magic string) bool { return strings.HasPrefix(string(head), magic) }):
		return Sklearn, nil
	case head[0] == '{':
		return f.jsonFormat(head)
	case head[0] == '<' || bytes.HasPrefix(head, []byte("\xef\xbb\xbf<")):
		if bytes.Contains(head, []byte("<PMML")) || ending == ".pmml" {
			return PMML, nil
		}
	}
	switch ending {
	case ".onnx":
		return ONNX, nil
	case ".pkl", ".pickle", ".joblib", ".sav":
		return Sklearn, nil
	case ".graphdef":
		return GraphDef, nil
	case ".caffemodel", ".prototxt":
		return Caffe, nil
	case ".plan", ".engine", ".trt":
		return TensorRT, nil
	case ".xgboost", ".deprecated", ".bst":
		return XGBoost, nil
	case ".pmml":
		return PMML, nil
	}
	if path.Base(f.name) == "saved_model.pb" {
		return SavedModel, nil
	}
	if path.Base(f.name) == "MLmodel" {
		return MLflow, nil
	}
	return f.protobufFormat()
}

// archiveFormat tells what an archive is by its members.
func (f *file) archiveFormat() (Format, error) {
	a, err := f.archive()
	if err != nil {
		return "", err
	}
	var scripted, pickled bool
	for name := range a.members {
		dir, base := path.Split(name)
		switch {
		case name == "metadata.json" && a.has("config.json"):
			return Keras, nil
		case name == "schema.json":
			return Sklearn, nil
		case base == "archive_format" && strings.Count(dir, "/") == 1:
			return TorchExport, nil
		case base == "constants.pkl":
			scripted = true
		case base == "data.pkl":
			pickled = true
		}
	}
	switch {
	case scripted:
		return TorchScript, nil
	case pickled:
		return TorchPickle, nil
	}
	return "", fmt.Errorf("%w: this ZIP file has no member by which one is known", ErrUnknownFormat)
}

// jsonFormat tells what a document is by its names near the beginning, UBJSON included.
func (f *file) jsonFormat(head []byte) (Format, error) {
	switch ending := strings.ToLower(path.Ext(f.name)); {
	case strings.HasSuffix(f.name, ".safetensors.index.json"):
		return Safetensors, nil
	case ending == ".ubj":
		return XGBoost, nil
	}
	tail := bytes.Clone(head)
	if f.size > 4096 {
		end, err := f.peek(f.size-4096, 4096)
		if err != nil {
			return "", err
		}
		tail = bytes.Clone(end)
	}
	contains := func(name string) bool {
		return bytes.Contains(head, []byte(name)) || bytes.Contains(tail, []byte(name))
	}
	switch {
	case contains("learner") && (contains("gradient_booster") || contains("learner_model_param") || contains(`"version"`)):
		return XGBoost, nil
	case contains(`"weight_map"`):
		return Safetensors, nil
	case contains(`"oblivious_trees"`) || contains(`"model_info"`) || contains(`"features_info"`) || contains(`"scale_and_bias"`):
		return CatBoost, nil
	case contains(`"arg_nodes"`) || contains(`"node_row_ptr"`) || contains(`"nodes"`) && contains(`"op"`):
		return MXNet, nil
	}
	return "", fmt.Errorf("%w: this JSON document has no name by which one is known", ErrUnknownFormat)
}

// protobufFormat tells by their fields messages that have no magic number and no
// telling name.
func (f *file) protobufFormat() (Format, error) {
	enough := errors.New("enough")
	type kind struct {
		num protowire.Number
		typ protowire.Type
	}
	seen := map[kind]int{}
	fields, operators := 0, false
	err := f.message(0, f.size).each(func(top field) error {
		seen[kind{top.num, top.typ}]++
		if fields++; fields == 1 && top.num == 1 && top.typ == protowire.BytesType {
			// A GraphDef begins with a node: its name and operator are texts.
			parts := 0
			operators = top.body.each(func(part field) error {
				if parts++; parts <= 2 && (part.typ != protowire.BytesType || int(part.num) != parts) {
					return protofield.ErrWire
				}
				return nil
			}) == nil && parts >= 2
		}
		if fields == 1000 {
			return enough
		}
		return nil
	})
	if err != nil && !errors.Is(err, enough) {
		if limit := (*LimitError)(nil); errors.As(err, &limit) || f.r.ctx.Err() != nil {
			return "", err
		}
		return "", ErrUnknownFormat
	}
	has := func(num protowire.Number, typ protowire.Type) bool { return seen[kind{num, typ}] > 0 }
	version, text := has(1, protowire.VarintType), has(1, protowire.BytesType)
	switch {
	case version && has(7, protowire.BytesType):
		return ONNX, nil
	case version && has(2, protowire.BytesType) && len(seen) == 2:
		return SavedModel, nil
	case operators:
		return GraphDef, nil
	case text && (has(100, protowire.BytesType) || has(2, protowire.BytesType)):
		return Caffe, nil
	}
	return "", ErrUnknownFormat
}

// torchMagic is how a pickle of torch.save began before it was put into archives.
const torchMagic = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"

// pickleFormat tells pickles of PyTorch from others. Whether one is scikit-learn's is
// known when it has been read.
func (f *file) pickleFormat() (Format, error) {
	head, err := f.peek(0, len(torchMagic))
	if err != nil {
		return "", err
	}
	if string(head) == torchMagic {
		return TorchPickle, nil
	}
	return Sklearn, nil
}
