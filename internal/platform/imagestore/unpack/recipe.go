// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// A recipe is a sequence of frames: a byte that names the kind, then
//
//	rawFrame:  length (uvarint), that many bytes of the stream
//	fileFrame: size (uvarint), length of the path (uvarint), the path in the layer's directory
//
// A file frame stands for the content of a file.
const (
	rawFrame  = 'R'
	fileFrame = 'F'
	// maxFrame bounds raw frames.
	maxFrame = 64 << 10
)

// recorder reads a stream and writes its recipe.
type recorder struct {
	r    io.Reader
	w    io.Writer // nil records nothing
	raw  []byte
	file bool // reading a file's content
	err  error
}

// Read reads.
func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if r.w != nil && !r.file {
		r.raw = append(r.raw, p[:n]...)
		if len(r.raw) >= maxFrame {
			r.flush()
		}
	}
	if r.err != nil {
		err = r.err
	}
	return n, err
}

func (r *recorder) flush() {
	for len(r.raw) > 0 {
		n := min(len(r.raw), maxFrame)
		r.write(append(binary.AppendUvarint([]byte{rawFrame}, uint64(n)), r.raw[:n]...))
		r.raw = r.raw[n:]
	}
	r.raw = nil
}

func (r *recorder) write(p []byte) {
	if r.err != nil || r.w == nil {
		return
	}
	if _, err := r.w.Write(p); err != nil {
		r.err = fmt.Errorf("cannot write the layer's recipe: %w", err)
	}
}

// begin says that the next size bytes are the content of the file at path.
func (r *recorder) begin(path string, size int64) {
	if r.w == nil {
		return
	}
	r.flush()
	b := binary.AppendUvarint([]byte{fileFrame}, uint64(size))
	b = binary.AppendUvarint(b, uint64(len(path)))
	r.write(append(b, path...))
	r.file = true
}

// end says that the content was read.
func (r *recorder) end() { r.file = false }

// finish writes what remains.
func (r *recorder) finish() error {
	r.flush()
	return r.err
}

// Replay writes the stream that recipe was made from to w, with the contents of files from the
// unpacked layer in dir. The caller verifies the result's digest.
func Replay(ctx context.Context, w io.Writer, recipe io.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	r := bufio.NewReader(recipe)
	for {
		kind, err := r.ReadByte()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := binary.ReadUvarint(r)
		if err != nil || n > 1<<62 {
			return fmt.Errorf("the layer's recipe is damaged: %w", errors.Join(err, io.ErrUnexpectedEOF))
		}
		switch kind {
		case rawFrame:
			if _, err := io.CopyN(w, r, int64(n)); err != nil {
				return err
			}
		case fileFrame:
			length, err := binary.ReadUvarint(r)
			if err != nil || length > maxPath {
				return fmt.Errorf("the layer's recipe is damaged: %w", errors.Join(err, io.ErrUnexpectedEOF))
			}
			path := make([]byte, length)
			if _, err := io.ReadFull(r, path); err != nil {
				return err
			}
			if err := copyFile(w, root, string(path), int64(n)); err != nil {
				return err
			}
		default:
			return fmt.Errorf("the layer's recipe is damaged: it has a frame of the unknown kind %#x", kind)
		}
	}
}

func copyFile(w io.Writer, root *os.Root, path string, size int64) error {
	info, err := root.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() != size {
		return fmt.Errorf("%s in the store is not the file of %d bytes that was unpacked", path, size)
	}
	f, err := root.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.CopyN(w, f, size)
	return err
}

// maxPath bounds the length of names, as the kernel does (PATH_MAX, with its final zero).
const maxPath = 4095
