// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"unicode/utf8"
)

// hostile is a model that must be refused.
type hostile struct {
	name   string
	reason string
	files  fstest.MapFS
	read   string
	// want is part of the error, limit the limit that is exceeded, if one is.
	want  string
	limit string
}

// one is a file system of one file.
func one(name string, data []byte) fstest.MapFS { return fstest.MapFS{name: {Data: data}} }

// refuse checks that models are refused with an error that says where and why, and
// without much memory.
func refuse(t *testing.T, cases []hostile) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			read := c.read
			if read == "" {
				for name := range c.files {
					read = name
				}
			}
			sig, err := Read(t.Context(), c.files, read, Options{Limits: Limits{Memory: 4 << 20}})
			if err == nil {
				t.Fatalf("it was read, although %s: %s", c.reason, describe(t, sig))
			}
			wellFormed(t, err)
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %q, want %q in it: %s", err, c.want, c.reason)
			}
			limit := (*LimitError)(nil)
			if errors.As(err, &limit); c.limit != "" && (limit == nil || limit.Limit != c.limit) {
				t.Errorf("the error is %q, want the limit %s", err, c.limit)
			}
		})
	}
}

// wellFormed checks that an error names its file and can be printed.
func wellFormed(t testing.TB, err error) {
	t.Helper()
	placed, ok := err.(*Error)
	if !ok || placed.File == "" || !strings.Contains(err.Error(), printable(placed.File)) {
		t.Errorf("the error %q (%T) names no file", err, err)
	}
	if len(err.Error()) > 2000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
	if !utf8.ValidString(err.Error()) {
		t.Errorf("the error %q is not UTF-8", err)
	}
}

func describe(t testing.TB, sig *Signature) string {
	t.Helper()
	return strings.TrimSpace(stringOf(asMap(t, sig)))
}

// allocated is how many bytes a function allocates in total.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestOnlyRegularFilesBelowTheRootAreOpened(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "secret.gguf"), ggufFile(t, 3))
	link(t, filepath.Join(outside, "secret.gguf"), filepath.Join(dir, "out.gguf"))
	link(t, "loop.gguf", filepath.Join(dir, "loop.gguf"))
	link(t, "/dev/zero", filepath.Join(dir, "zero.gguf"))
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "sub", "pipe.gguf"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, folder := range []string{"saved", "looped"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, folder, "saved_model.pb"), savedModel("f", tensorInfoProto("x", -1, 4)))
	}
	link(t, outside, filepath.Join(dir, "saved", "variables"))
	link(t, ".", filepath.Join(dir, "looped", "again"))
	for name, want := range map[string]string{
		"saved":         "escapes",
		"out.gguf":      "escapes",
		"loop.gguf":     "",
		"zero.gguf":     "escapes",
		"sub":           "pipe",
		"sub/pipe.gguf": "pipe",
		"../x.gguf":     "leads out",
		"missing.gguf":  "no such file",
	} {
		_, err := Read(t.Context(), root.FS(), name, Options{})
		if err == nil {
			t.Errorf("%s was read", name)
			continue
		}
		wellFormed(t, err)
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %q, want %q in it", name, err, want)
		}
	}
	// A link to a folder above is not followed, so it does no harm.
	if sig, err := Read(t.Context(), root.FS(), "looped", Options{}); err != nil || len(sig.Files) != 1 {
		t.Errorf("a folder with a link to itself: %v, %v", sig, err)
	}
	for name, want := range map[string]string{"/dev/zero": "device", filepath.Join(dir, "sub", "pipe.gguf"): "pipe"} {
		if _, err := ReadPath(t.Context(), name, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q in it", name, err, want)
		}
	}
	if _, err := ReadPath(t.Context(), filepath.Join(dir, "out.gguf"), Options{}); err != nil {
		t.Errorf("a link that the caller names is followed: %v", err)
	}
}

func write(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t testing.TB, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

// sparse makes a file of that size of which only the head is written.
func sparse(t testing.TB, name string, head []byte, size int64) {
	t.Helper()
	write(t, name, head)
	if err := os.Truncate(name, size); err != nil {
		t.Fatal(err)
	}
}

// TestSparseGigabytesCostNothing reads files that claim 1 TiB, as a download that was
// cut off leaves.
func TestSparseGigabytesCostNothing(t *testing.T) {
	t.Parallel()
	heads := map[string]string{
		"zeros.safetensors":            "",
		"zeros.onnx":                   "",
		"zeros.gguf":                   "",
		"zeros.bin":                    "",
		"zeros.json":                   "{",
		"gguf.gguf":                    "GGUF\x03\x00\x00\x00\xff\xff\xff\xff\x01\x00\x00\x00\x01\x00\x00\x00",
		"hdf.h5":                       "\x89HDF\r\n\x1a\n",
		"zip.pt":                       "PK\x03\x04",
		"pickle.pkl":                   "\x80\x04",
		"pickle-bytes.pkl":             "\x80\x04\x8e\xff\xff\xff\xff\xff\x00\x00\x00",
		"joblib.joblib":                "\x78\x9c",
		"tree.txt":                     "tree\nversion=v4\n",
		"model.pmml":                   "<?xml version=\"1.0\"?><PMML>",
		"model.cbm":                    "CBM1\xff\xff\xff\xff",
		"model.params":                 "\x12\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff",
		"model.ubj":                    "{L\x00\x00\x00\x00\x00\x00\x00\x07learner",
		"header.safetensors":           "\x00\xe1\xf5\x05\x00\x00\x00\x00{",
		"graph.pb":                     "\x0a\xff\xff\xff\xff\xff\x0f",
		"initializer.onnx":             "\x08\x08\x3a\xf8\xff\xff\xff\xff\x1f\x2a\x80\x80\x80\x80\x10",
		"net.caffemodel":               "\x0a\x01x",
		"net.prototxt":                 "layer {",
		"model.safetensors.index.json": "{\"weight_map\":",
	}
	dir := t.TempDir()
	for name, head := range heads {
		sparse(t, filepath.Join(dir, name), []byte(head), 1<<40)
		sig, err := ReadPath(t.Context(), filepath.Join(dir, name), Options{})
		if err == nil {
			t.Errorf("%s was read: %s", name, describe(t, sig))
			continue
		}
		wellFormed(t, err)
	}
}

func TestCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, one("m.gguf", ggufFile(t, 3)), "m.gguf", Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want context.Canceled", err)
	}
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{"empty": "", "text.txt": "hello", "page.html": "<html>", "list.json": "[1]", "other.json": `{"a":1}`, "noise": "\xff\xfe\xfd\xfc"} {
		if _, err := Read(t.Context(), one(name, []byte(data)), name, Options{}); !errors.Is(err, ErrUnknownFormat) {
			t.Errorf("%s: the error is %v, want ErrUnknownFormat", name, err)
		}
	}
	if _, err := Read(t.Context(), one("dir/readme", nil), "dir", Options{}); !errors.Is(err, ErrUnknownFormat) {
		t.Errorf("a folder without models: %v, want ErrUnknownFormat", err)
	}
	if _, err := Read(t.Context(), one("x", []byte("x")), "x", Options{Format: "abc"}); !errors.Is(err, ErrUnknownFormat) {
		t.Errorf("an unknown format was taken: %v", err)
	}
	several := fstest.MapFS{"a.onnx": {Data: []byte{8, 1}}, "b.onnx": {Data: []byte{8, 1}}}
	if _, err := Read(t.Context(), several, ".", Options{}); err == nil || !strings.Contains(err.Error(), "several models: a.onnx, b.onnx") {
		t.Errorf("a folder of two models: %v", err)
	}
}

var _ fs.FS = rootFS{}
