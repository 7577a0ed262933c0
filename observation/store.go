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
	// nanoseconds and return it in UTC.
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
	// From is the offset of the first byte of this batch, To the offset after
	// its last byte: 0 ≤ From ≤ To.
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

// Store stores the points of trials. Its methods are safe for concurrent use.
// When a method has returned nil, its change is durable: it survives the end
// of the process and, if the store is on disk, a power loss.
type Store interface {
	// Append atomically stores a batch and advances its source's offset from
	// b.From to b.To. The error is an [*OffsetError] if the source's offset is
	// not b.From; then nothing was stored, and the caller resumes from
	// OffsetError.Have. After a context error, or ErrClosed, the batch may
	// have been stored: check Offset. After any other error it was not.
	Append(ctx context.Context, t Trial, b Batch) error

	// Offset returns the offset up to which a source is stored, 0 for a source
	// that is not known.
	Offset(ctx context.Context, t Trial, source string) (int64, error)

	// Points returns the selected points of a trial ordered by time, and for
	// equal times by arrival. An unknown trial has none.
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

// maxName and maxSource limit the bytes of a trial's namespace and name, and of
// a source's name: databases limit the size of index entries.
const maxName, maxSource = 255, 2000

// Check validates the name of a trial for storing points.
func (t Trial) Check() error {
	switch {
	case len(t.Namespace) > maxName || len(t.Name) > maxName:
		return fmt.Errorf("namespace or name of the trial is longer than %d bytes", maxName)
	case !isText(t.Namespace) || !isText(t.Name):
		return fmt.Errorf("trial %q: %w", t, errText)
	}
	return nil
}

// Check validates a batch, independent of the store's content.
func (b Batch) Check() error {
	switch {
	case b.Source == "":
		return errors.New("batch has no source")
	case len(b.Source) > maxSource:
		return fmt.Errorf("source %.80q… is longer than %d bytes", b.Source, maxSource)
	case b.From < 0 || b.To < b.From:
		return fmt.Errorf("batch covers bytes %d to %d: want 0 ≤ from ≤ to", b.From, b.To)
	case b.From == b.To && len(b.Points) > 0:
		return fmt.Errorf("batch has %d points from no bytes, which could be stored twice", len(b.Points))
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
		return fmt.Errorf("its time is in year %d: want 0 to 9999", year)
	}
	return nil
}

// isText reports whether every database can store s as text.
func isText(s string) bool {
	return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}
