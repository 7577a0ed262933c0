// SPDX-License-Identifier: Apache-2.0

package containerlog

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// model is a log as one would write it down: lines with the time of their first byte.
type model struct {
	chunks []chunk
}

type chunk struct {
	text string
	at   time.Time
}

type line struct {
	text string
	at   time.Time
}

func (m *model) lines() []line {
	var lines []line
	fresh := true
	for _, c := range m.chunks {
		for _, part := range strings.SplitAfter(c.text, "\n") {
			if part == "" {
				continue
			}
			if fresh {
				lines = append(lines, line{at: c.at})
			}
			lines[len(lines)-1].text += part
			fresh = strings.HasSuffix(part, "\n")
		}
	}
	return lines
}

func (m *model) show(o Options) string {
	lines := m.lines()
	if o.Tail >= 0 && int(o.Tail) < len(lines) {
		lines = lines[len(lines)-int(o.Tail):]
	}
	var out strings.Builder
	for _, l := range lines {
		if l.at.Before(o.Since) {
			continue
		}
		if o.Timestamps {
			out.WriteString(l.at.UTC().Format(stampFormat) + " ")
		}
		out.WriteString(l.text)
	}
	s := out.String()
	if o.Limit > 0 && int64(len(s)) > o.Limit {
		s = s[:o.Limit]
	}
	return s
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func drawModel(t *rapid.T) *model {
	text := rapid.StringOf(rapid.SampledFrom([]rune{'a', 'b', '\n', '\n', '\x00', 'é'}))
	at := epoch
	return &model{chunks: rapid.SliceOf(rapid.Custom(func(t *rapid.T) chunk {
		at = at.Add(time.Duration(rapid.IntRange(1, 2000).Draw(t, "step")) * time.Millisecond)
		s := text.Draw(t, "text")
		if rapid.IntRange(0, 9).Draw(t, "long") == 0 {
			s += strings.Repeat("x", 70<<10)
		}
		return chunk{text: s, at: at}
	})).Draw(t, "chunks")}
}

func (m *model) write(path string) error {
	w, err := Create(path)
	if err != nil {
		return err
	}
	defer w.Close()
	for _, c := range m.chunks {
		if _, err := w.File().WriteString(c.text); err != nil {
			return err
		}
		size, err := w.Size()
		if err != nil {
			return err
		}
		if err := w.Mark(size, c.at); err != nil {
			return err
		}
	}
	return nil
}

func drawOptions(t *rapid.T, m *model) Options {
	o := Options{
		Tail:       int64(rapid.IntRange(All, 12).Draw(t, "tail")),
		Timestamps: rapid.Bool().Draw(t, "timestamps"),
	}
	if rapid.Bool().Draw(t, "limited") {
		o.Limit = int64(rapid.IntRange(1, 200).Draw(t, "limit"))
	}
	if len(m.chunks) > 0 && rapid.Bool().Draw(t, "since") {
		c := m.chunks[rapid.IntRange(0, len(m.chunks)-1).Draw(t, "chunk")]
		o.Since = c.at.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "shift")) * time.Microsecond)
	}
	return o
}

func TestCopyEqualsModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		path := filepath.Join(dir, "model.log")
		if err := Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := m.write(path); err != nil {
			t.Fatal(err)
		}
		o := drawOptions(t, m)
		if len(m.chunks) > 0 && o.Since.After(m.chunks[len(m.chunks)-1].at) {
			// Without a later record the file's own time decides, and that is now.
			o.Since = time.Time{}
		}
		var got bytes.Buffer
		if err := Copy(t.Context(), &got, path, o, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m.show(o), got.String()); diff != "" {
			t.Fatalf("options %+v: log differs from model (-want +got):\n%s", o, diff)
		}
	})
}
