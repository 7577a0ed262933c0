// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Options change how a model is read.
type Options struct {
	// Limits bound the cost.
	Limits Limits
	// Format is the model's format if it is known; "" detects it.
	Format Format
}

// Read reads the model that is a file or folder of fsys; name "." is all of it. The
// files must support io.ReaderAt, as those of os.Root.FS, os.DirFS and embed.FS do.
// fsys should not let links lead out of it: os.Root.FS does not. The other files of
// a model (shards, external data) are found beside it. The error is an [Error]
// where the model is at fault, and wraps a [LimitError], [ErrUnknownFormat] or
// [ErrUnsupported] where one of these is the reason.
func Read(ctx context.Context, fsys fs.FS, name string, options Options) (*Signature, error) {
	r := newReading(ctx, fsys, options.Limits)
	defer r.close()
	if err := r.read(name, options.Format); err != nil {
		return nil, err
	}
	return r.sig, nil
}

// ReadPath is [Read] for a path of this machine. Links on the way to the path are
// followed; those in a folder must stay in it.
func ReadPath(ctx context.Context, name string, options Options) (*Signature, error) {
	root, name, err := openRoot(name)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return Read(ctx, rootFS{root.FS(), root}, name, options)
}

// Detect tells the format of a file or folder from its first bytes, its structure
// and, where these do not decide, its name. It costs a few reads, whatever the size.
func Detect(ctx context.Context, fsys fs.FS, name string, limits Limits) (Format, error) {
	r := newReading(ctx, fsys, limits)
	defer r.close()
	found, err := r.detect(name)
	return found.format, err
}

// openRoot opens the folder of a path, and returns the path's name in it.
func openRoot(name string) (*os.Root, string, error) {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil, "", fmt.Errorf("cannot find the model: %w", err)
	}
	info, err := os.Lstat(name)
	if err != nil {
		return nil, "", fmt.Errorf("cannot find the model: %w", err)
	}
	dir, base := name, "."
	if !info.IsDir() {
		dir, base = filepath.Split(name)
		dir = cmp.Or(dir, ".")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", fmt.Errorf("cannot open the model's folder: %w", err)
	}
	return root, base, nil
}

// rootFS opens files so that one which becomes a pipe after it was looked at does
// not block.
type rootFS struct {
	fs.FS
	root *os.Root
}

func (r rootFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return r.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

func (r rootFS) Stat(name string) (fs.FileInfo, error) { return fs.Stat(r.FS, name) }

func (r rootFS) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(r.FS, name) }

// reading is the state of one call of Read.
type reading struct {
	*budget
	fsys fs.FS
	sig  *Signature
	open map[string]*file
	// listed are the names in sig.Files.
	listed map[string]bool
}

func newReading(ctx context.Context, fsys fs.FS, limits Limits) *reading {
	return &reading{budget: newBudget(ctx, limits), fsys: fsys, sig: &Signature{}, open: map[string]*file{}, listed: map[string]bool{}}
}

func (r *reading) close() {
	for _, f := range r.open {
		f.closer.Close()
	}
}

// within is a reading of another model that shares the budget and the open files.
func (r *reading) within(name string, format Format) (*Signature, error) {
	inner := &reading{budget: r.budget, fsys: r.fsys, sig: &Signature{}, open: r.open, listed: map[string]bool{}}
	if err := inner.read(name, format); err != nil {
		return nil, err
	}
	return inner.sig, nil
}

// reader reads a model of a format from its main file; nil for an unknown format.
func reader(format Format) func(*reading, *file) error {
	switch format {
	case Safetensors:
		return readSafetensors
	case GGUF:
		return readGGUF
	case ONNX:
		return readONNX
	case XGBoost:
		return readXGBoost
	case LightGBM:
		return readLightGBM
	case CatBoost:
		return readCatBoost
	case PMML:
		return readPMML
	case TensorRT:
		return readTensorRT
	case MLflow:
		return readMLflow
	case MXNet:
		return readMXNet
	case Caffe:
		return readCaffe
	case TorchScript:
		return readTorchScript
	case TorchPickle:
		return readTorchPickle
	case TorchExport:
		return readTorchExport
	case SavedModel:
		return readSavedModel
	case GraphDef:
		return readGraphDef
	case Keras:
		return readKeras
	case KerasH5:
		return readKerasH5
	case Sklearn, Pickle:
		return readSklearn
	}
	return nil
}

func (r *reading) read(name string, format Format) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	found, err := r.detect(name)
	if err != nil && (format == "" || found.main == "") {
		return err
	}
	if format == "" {
		format = found.format
	}
	read := reader(format)
	if read == nil {
		return &Error{File: name, Offset: -1, Err: fmt.Errorf("%w: %q is none of the formats", ErrUnknownFormat, format)}
	}
	f, err := r.file(found.main)
	if err != nil {
		return err
	}
	r.sig.Format = format
	if found.folder {
		if err := r.addFolder(name); err != nil {
			return err
		}
	} else {
		r.addFile(f)
	}
	if err := read(r, f); err != nil {
		return f.fail(-1, err)
	}
	slices.SortFunc(r.sig.Files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(r.sig.Callables)
	slices.Sort(r.sig.Unsafe)
	return nil
}

// stat is the size of a regular file.
func (r *reading) stat(name string) (int64, error) {
	if !fs.ValidPath(name) {
		return 0, &Error{File: name, Offset: -1, Err: errors.New("this path leads out of the model's folder")}
	}
	info, err := fs.Stat(r.fsys, name)
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		return 0, &Error{File: name, Offset: -1, Err: err}
	}
	return info.Size(), nil
}

// file opens a regular file, once.
func (r *reading) file(name string) (*file, error) {
	if f := r.open[name]; f != nil {
		return f, nil
	}
	// Opening a device or a pipe may already do something, so it is looked at before.
	if _, err := r.stat(name); err != nil {
		return nil, err
	}
	opened, err := r.fsys.Open(name)
	if err != nil {
		return nil, &Error{File: name, Offset: -1, Err: err}
	}
	info, err := opened.Stat()
	if err == nil {
		err = regular(info)
	}
	at, random := opened.(io.ReaderAt)
	if err == nil && !random {
		err = errors.New("its file system has no random access")
	}
	if err != nil {
		opened.Close()
		return nil, &Error{File: name, Offset: -1, Err: err}
	}
	f := &file{r: r, name: name, at: at, size: info.Size(), closer: opened}
	r.open[name] = f
	return f, nil
}

// done closes a file of which there may be many.
func (r *reading) done(f *file) {
	delete(r.open, f.name)
	f.closer.Close()
}

func regular(info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return errors.New("this is a folder, where a file is needed")
	case mode&fs.ModeNamedPipe != 0:
		return errors.New("this is a named pipe, not a file")
	case mode&fs.ModeSocket != 0:
		return errors.New("this is a socket, not a file")
	default:
		return errors.New("this is a device, not a file")
	}
}

// addFile counts a file as part of the model.
func (r *reading) addFile(f *file) { r.addSize(f.name, f.size) }

func (r *reading) addSize(name string, size int64) {
	if r.listed[name] {
		return
	}
	r.listed[name] = true
	r.sig.Files = append(r.sig.Files, File{Name: name, Size: size})
	r.sig.Size = sum(r.sig.Size, size)
}

// addFolder counts all files of a folder. Links count as what they lead to, as long as
// that is within the root.
func (r *reading) addFolder(dir string) error {
	files := int64(0)
	return fs.WalkDir(r.fsys, dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return &Error{File: name, Offset: -1, Err: err}
		}
		if entry.IsDir() {
			return r.nest(strings.Count(name, "/"))
		}
		if files++; files > r.limits.Files {
			return &Error{File: dir, Offset: -1, Err: &LimitError{"Files", r.limits.Files}}
		}
		if err := r.hold(int64(len(name)) + 64); err != nil {
			return &Error{File: name, Offset: -1, Err: err}
		}
		info, err := fs.Stat(r.fsys, name)
		if err != nil {
			return &Error{File: name, Offset: -1, Err: err}
		}
		if info.IsDir() {
			r.sig.note("%s is a link to a folder and was left out", name)
			return nil
		}
		if err := regular(info); err != nil {
			return &Error{File: name, Offset: -1, Err: err}
		}
		r.addSize(name, info.Size())
		return nil
	})
}

// beside is the file of that name in the folder of f.
func (f *file) beside(name string) (*file, error) { return f.r.file(path.Join(path.Dir(f.name), name)) }

// addTensor adds a stored tensor and counts its elements.
func (r *reading) addTensor(t Tensor) error {
	n, err := t.Shape.elements()
	if err != nil {
		return fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	r.sig.addParameters(n)
	return r.list(&r.sig.Tensors, t)
}

// list adds a tensor to a list and pays for it.
func (r *reading) list(to *[]Tensor, t Tensor) error {
	if err := r.hold(96 + 24*int64(len(t.Shape))); err != nil {
		return err
	}
	*to = append(*to, t)
	return nil
}
