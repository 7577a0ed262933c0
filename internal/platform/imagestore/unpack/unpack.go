// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// ErrTooLarge is the cause of errors about streams that exceed a [Budget].
var ErrTooLarge = errors.New("the image is larger than permitted")

// Budget is how much may be unpacked, shared by the layers of an image.
type Budget struct {
	bytes, stream, entries          atomic.Int64
	maxBytes, maxStream, maxEntries int64
}

// NewBudget permits files of that many bytes in total, and that many entries. The streams themselves
// may have as many bytes, and 4 KiB more per entry.
func NewBudget(bytes, entries int64) *Budget {
	return &Budget{maxBytes: bytes, maxStream: bytes + 4096*entries, maxEntries: entries}
}

// takeBytes counts the bytes of a file before they are written.
func (b *Budget) takeBytes(n int64) error {
	if n < 0 || n > b.maxBytes || b.bytes.Add(n) > b.maxBytes {
		return fmt.Errorf("%w: its files have more than %d bytes", ErrTooLarge, b.maxBytes)
	}
	return nil
}

func (b *Budget) takeEntry() error {
	if b.entries.Add(1) > b.maxEntries {
		return fmt.Errorf("%w: it has more than %d files", ErrTooLarge, b.maxEntries)
	}
	return nil
}

// Reader counts a layer's uncompressed stream: one that never ends is an error.
func (b *Budget) Reader(r io.Reader) io.Reader { return &budgetReader{r: r, b: b} }

type budgetReader struct {
	r io.Reader
	b *Budget
}

// Read reads.
func (r *budgetReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if r.b.stream.Add(int64(n)) > r.b.maxStream {
		return n, fmt.Errorf("%w: unpacked, it has more than %d bytes", ErrTooLarge, r.b.maxStream)
	}
	return n, err
}

// Options say how layers are unpacked.
type Options struct {
	// UserXattr marks opaque directories by user.overlay.opaque, for overlayfs mounted with userxattr.
	UserXattr bool
	// KeepOwners gives files the owners that the stream names.
	KeepOwners bool
	// Devices makes devices.
	Devices bool
	// Budget bounds what is unpacked. It is required.
	Budget *Budget
	// Recipe receives the recipe, uncompressed; nil is none.
	Recipe io.Writer
}

// Report says what was unpacked.
type Report struct {
	// Entries is the number of entries in the stream.
	Entries int64 `json:"entries"`
	// Bytes is the total size of the files.
	Bytes int64 `json:"bytes"`
	// Skipped is the number of entries that were left out, SkippedNames the first of them.
	Skipped      int64    `json:"skipped,omitempty"`
	SkippedNames []string `json:"skippedNames,omitempty"`
	// Exact says that [Replay] can write the stream again.
	Exact bool `json:"exact"`
}

// maxSkippedNames is how many names of entries that were left out are reported.
const maxSkippedNames = 16

func (r *Report) skip(name string) {
	r.Skipped++
	if len(r.SkippedNames) < maxSkippedNames {
		r.SkippedNames = append(r.SkippedNames, name)
	}
}
