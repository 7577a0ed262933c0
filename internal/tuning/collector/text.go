// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"time"

	"diwan.dev/diwan/observation"
)

// parser finds the metrics of one unit: a line or a record.
type parser interface {
	// parse appends the points of a unit that was read at a time.
	parse(points []observation.Point, unit []byte, at time.Time) []observation.Point
}

// text is the parser of the format TEXT.
type text struct {
	metrics map[string]string // by name, the name; a lookup by bytes needs no copy
	needles [][]byte          // the names; a line without any of them has no metric
	filters []filter
	others  *others
}

func newText(metrics, filters []string, others *others) (*text, error) {
	p := &text{metrics: map[string]string{}, others: others}
	for _, m := range metrics {
		p.metrics[m] = m
		p.needles = append(p.needles, []byte(m))
	}
	if len(filters) == 0 {
		filters = []string{DefaultFilter}
	}
	for _, expression := range filters {
		f, err := newFilter(expression)
		if err != nil {
			return nil, err
		}
		p.filters = append(p.filters, f)
	}
	return p, nil
}

func (p *text) parse(points []observation.Point, line []byte, at time.Time) []observation.Point {
	if !p.mayMatch(line) && !p.others.search() {
		return points
	}
	stamp, stamped := time.Time{}, false
	for _, find := range p.filters {
		find(line, func(name, value []byte) {
			metric, ok := p.metrics[string(name)]
			if !ok {
				p.others.other(name, value)
				return
			}
			text := clean(value)
			if text == "" || text == "+" || text == "-" {
				return
			}
			if !stamped {
				stamp, stamped = lineTime(line, at), true
			}
			p.others.metric(metric)
			points = append(points, observation.Point{Time: stamp, Metric: metric, Value: text})
		})
	}
	return points
}

func (p *text) mayMatch(line []byte) bool {
	for _, needle := range p.needles {
		if bytes.Contains(line, needle) {
			return true
		}
	}
	return false
}

// lineTime returns the timestamp with which a line begins, followed by a
// blank, or else the time when it was read.
func lineTime(line []byte, at time.Time) time.Time {
	first, _, ok := bytes.Cut(line, []byte(" "))
	if !ok || len(first) < len("2006-01-02T15:04:05Z") || !isDigit(first[0]) {
		return at
	}
	return orTime(string(first), at)
}

// orTime parses an RFC 3339 time, or returns another if a store cannot keep
// it.
func orTime(s string, other time.Time) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return other
	}
	return storable(t, other)
}

func storable(t, other time.Time) time.Time {
	if year := t.UTC().Year(); year < 0 || year > 9999 {
		return other
	}
	return t
}

// clean returns a value as the stores want it, valid UTF-8 without zero bytes,
// and without blanks around it.
func clean(value []byte) string {
	value = bytes.ToValidUTF8(value, []byte("\uFFFD"))
	if bytes.IndexByte(value, 0) >= 0 {
		value = bytes.ReplaceAll(value, []byte{0}, nil)
	}
	return string(bytes.TrimSpace(value))
}
