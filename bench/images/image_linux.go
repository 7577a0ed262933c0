// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/klauspost/compress/gzip"

	"diwan.dev/diwan/internal/platform/registry"
)

// hub is a registry on the loopback, in this process.
type hub struct {
	dir    string
	host   string
	stop   context.CancelFunc
	served chan error
}

func serve(dir string) (*hub, error) {
	content, err := registry.Open(registry.Config{
		Dir:       filepath.Join(dir, "content"),
		Authorize: func(*http.Request) (registry.Access, error) { return registry.Write, nil },
	})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, content.Close())
	}
	h := &hub{dir: dir, host: listener.Addr().String(), served: make(chan error, 1)}
	server := &http.Server{Handler: content.Handler(), ReadHeaderTimeout: time.Minute}
	h.stop = func() { server.Close() }
	go func() {
		err := server.Serve(listener)
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		h.served <- errors.Join(err, content.Close())
	}()
	return h, nil
}

func (h *hub) close() error {
	h.stop()
	return <-h.served
}

// push makes an image, of one layer per function that writes it, the lowest first, and
// returns its name.
func (h *hub) push(repository string, config v1.Config, write ...func(*layerWriter) error) (string, error) {
	var layers []v1.Layer
	for i, f := range write {
		path := filepath.Join(h.dir, fmt.Sprintf("layer-%d.tar.gz", i))
		if err := writeLayer(path, f); err != nil {
			return "", fmt.Errorf("cannot write a layer of %s: %w", repository, err)
		}
		defer os.Remove(path)
		layer, err := tarball.LayerFromFile(path)
		if err != nil {
			return "", err
		}
		layers = append(layers, layer)
	}
	return h.pushLayers(repository, config, layers...)
}

func (h *hub) pushLayers(repository string, config v1.Config, layers ...v1.Layer) (string, error) {
	image, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return "", err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return "", err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, config
	if image, err = mutate.ConfigFile(image, file); err != nil {
		return "", err
	}
	reference, err := name.ParseReference(h.host + "/" + repository + ":v1")
	if err != nil {
		return "", err
	}
	return reference.String(), remote.Write(reference, image)
}

// layerWriter writes a layer's tar stream.
type layerWriter struct {
	*tar.Writer
	files int
	bytes int64
}

func writeLayer(path string, write func(*layerWriter) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	packed := gzip.NewWriter(file)
	w := &layerWriter{Writer: tar.NewWriter(packed)}
	if err := write(w); err != nil {
		return err
	}
	return errors.Join(w.Close(), packed.Close(), file.Close())
}

func (w *layerWriter) dir(name string) error {
	return w.WriteHeader(&tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o755})
}

func (w *layerWriter) link(name, target string) error {
	return w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777})
}

// copy writes a file of this machine.
func (w *layerWriter) copy(name, from string) error {
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	header, err := tar.FileInfoHeader(info, "")
	if err != nil {
		return err
	}
	header.Name, header.Uid, header.Gid, header.Uname, header.Gname = name, 0, 0, "", ""
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	n, err := io.Copy(w.Writer, bufio.NewReaderSize(file, 1<<20))
	w.files++
	w.bytes += n
	return err
}

// mix are the files of a directory of this machine, directory by directory, in an order
// that is arbitrary and the same each time.
type mix struct {
	from string
	dirs []string // relative to from; those that were not taken yet
}

func newMix(from string) (*mix, error) {
	m := &mix{from: from}
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != from {
			path, err = filepath.Rel(from, path)
			m.dirs = append(m.dirs, path)
		}
		return err
	})
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(m.dirs), func(i, j int) { m.dirs[i], m.dirs[j] = m.dirs[j], m.dirs[i] })
	return m, err
}

// take returns a function that writes the next directories to a layer, until it has about
// as many bytes, and counts into files and bytes. Files of more than a quarter of that are left out.
func (m *mix) take(size int64, files *int, bytes *int64) func(*layerWriter) error {
	return func(w *layerWriter) error {
		made := map[string]bool{".": true}
		for w.bytes < size {
			if len(m.dirs) == 0 {
				return fmt.Errorf("%s has too few files", m.from)
			}
			if err := m.write(w, m.dirs[0], size, made); err != nil {
				return err
			}
			m.dirs = m.dirs[1:]
		}
		*files += w.files
		*bytes += w.bytes
		return nil
	}
}

// write writes the files of one directory, with the directories above it.
func (m *mix) write(w *layerWriter, dir string, size int64, made map[string]bool) error {
	var above []string
	for up := dir; !made[up]; up = filepath.Dir(up) {
		above = append(above, up)
		made[up] = true
	}
	for _, up := range slices.Backward(above) {
		if err := w.dir(filepath.Join("usr", up)); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(filepath.Join(m.from, dir))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		from, to := filepath.Join(m.from, dir, entry.Name()), filepath.Join("usr", dir, entry.Name())
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(from)
			if err == nil {
				err = w.link(to, strings.TrimSpace(target))
			}
			if err != nil {
				return err
			}
		case info.Mode().IsRegular() && info.Size() <= size/4 && w.bytes+info.Size() <= size+size/20:
			if err := w.copy(to, from); err != nil {
				return err
			}
		}
	}
	return nil
}
