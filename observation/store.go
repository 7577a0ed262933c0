// SPDX-License-Identifier: Apache-2.0

package observation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Trial names a trial across namespaces. Neither name is longer than 255 bytes.
type Trial struct {
	Namespace, Name string
}

// String returns namespace/name.
func (t Trial) String() string { return t.Namespace + "/" + t.Name }

// Point is one value that a trial reported. Its texts are valid UTF-8 without
// zero bytes.
type Point struct {
	// Time is when the value was reported, in the years 0 to 9999. Stores keep
	// it to the nanosecond and return it in UTC.
	Time time.Time
	// Metric is the metric's name, not empty.
	Metric string
	// Value is the value as the trial wrote it.
	Value string
}

// Batch is what one source yielded between two of its byte offsets.
type Batch struct {
	// Source names the source within its trial: not empty, at most 2,000 bytes.
	Source string
	// From is the offset of the first byte that this batch covers, To that of
	// the first byte after it: 0 ≤ From ≤ To.
	From, To int64
	// Points are the points of those bytes, in the order in which they came.
	// There may be none.
	Points []Point
}

// Query selects points of one trial. The zero Query selects all of them.
type Query struct {
	// Metric selects one metric by name; "" selects all.
	Metric string
	// Start and End bound the time of the points, both inclusive. A zero time
	// does not bound.
	Start, End time.Time
	// Limit keeps only the first Limit points; 0 keeps all.
	Limit int
}

// Selects reports whether a point is among those that q selects, its limit
// aside.
func (q Query) Selects(p Point) bool {
	return (q.Metric == "" || q.Metric == p.Metric) &&
		(q.Start.IsZero() || !p.Time.Before(q.Start)) &&
		(q.End.IsZero() || !p.Time.After(q.End))
}

// Store keeps the points of trials. Its methods may be called by several
// goroutines at once. What a method has returned nil for is durable: it
// survives the end of the process and, where the store is on disk, of power.
type Store interface {
	// Append stores a batch and moves its source's offset from b.From to b.To.
	// Either both happen or neither. The error is an [*OffsetError] when the
	// source's offset is not b.From; then nothing was stored, and the caller
	// goes on from OffsetError.Have. After an error of the context, or
	// ErrClosed, the batch may still be stored: Offset tells. After any other
	// error it is not.
	Append(ctx context.Context, t Trial, b Batch) error

	// Offset returns the offset up to which a source is stored, 0 for a source
	// that is not known.
	Offset(ctx context.Context, t Trial, source string) (int64, error)

	// Points returns the selected points of a trial in order of their time,
	// and those of one time in the order in which they arrived. A trial that
	// is not known has none.
	Points(ctx context.Context, t Trial, q Query) ([]Point, error)

	// DeleteSource forgets the points and the offset of one source, such as an
	// attempt that was interrupted and runs again from its start. A source
	// that is not known is no error.
	DeleteSource(ctx context.Context, t Trial, source string) error

	// Delete forgets everything about a trial. A trial that is not known is no
	// error.
	Delete(ctx context.Context, t Trial) error

	// Close waits for calls under way and releases the store. Later calls of
	// other methods return [ErrClosed]; closing again does nothing.
	Close() error
}

// maxName and maxSource bound the bytes of a trial's namespace and name, and of
// a source's name: databases bound what an index holds.
const maxName, maxSource = 255, 2000

// Check returns what is wrong with the name of a trial that points are to be
// stored of, or nil.
func (t Trial) Check() error {
	switch {
	case len(t.Namespace) > maxName || len(t.Name) > maxName:
		return fmt.Errorf("namespace or name of the trial is longer than %d bytes", maxName)
	case !isText(t.Namespace) || !isText(t.Name):
		return fmt.Errorf("trial %q: %w", t, errText)
	}
	return nil
}

// Check returns what is wrong with a batch whatever its store holds, or nil.
func (b Batch) Check() error {
	switch {
	case b.Source == "":
		return errors.New("batch names no source")
	case len(b.Source) > maxSource:
		return fmt.Errorf("source %.80q… is longer than %d bytes", b.Source, maxSource)
	case b.From < 0 || b.To < b.From:
		return fmt.Errorf("batch covers bytes %d to %d: want 0 ≤ from ≤ to", b.From, b.To)
	case b.From == b.To && len(b.Points) > 0:
		return fmt.Errorf("batch has %d points from no bytes, so that they could be stored twice", len(b.Points))
	}
	if !isText(b.Source) {
		return fmt.Errorf("source %q: %w", b.Source, errText)
	}
	for i, p := range b.Points {
		if err := p.check(); err != nil {
			return fmt.Errorf("point %d of metric %q: %w", i, p.Metric, err)
		}
	}
	return nil
}

var errText = errors.New("want valid UTF-8 without zero bytes")

func (p Point) check() error {
	switch year := p.Time.UTC().Year(); {
	case p.Metric == "":
		return errors.New("want a name")
	case !isText(p.Metric) || !isText(p.Value):
		return errText
	case year < 0 || year > 9999:
		return fmt.Errorf("its time is in the year %d: want 0 to 9999", year)
	}
	return nil
}

// isText reports whether every database can keep s as text.
func isText(s string) bool {
	return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}
