// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"diwan.dev/diwan/observation"
)

// events is the parser of the records of one event file.
type events struct {
	dir  string // of the file, in the container
	seen *tags
	warn func(error)
}

func (p *events) parse(points []observation.Point, record []byte, at time.Time) []observation.Point {
	written, scalars, err := readEvent(record)
	if err != nil {
		p.warn(err)
		return points
	}
	if !written.IsZero() {
		at = written
	}
	for _, s := range scalars {
		for _, metric := range p.seen.metricsOf(p.dir, s.tag) {
			points = append(points, observation.Point{Time: at, Metric: metric, Value: s.value})
		}
	}
	return points
}

// tags knows which metrics the tags of event files are.
type tags struct {
	metrics []string
	known   map[string][]string // by directory and tag
	others  map[string]bool     // some tags that are no metric
	found   map[string]bool     // the metrics that a tag was seen of
}

// maxTags bounds how many tags are remembered, and moreTags how many that are
// no metrics.
const (
	maxTags  = 10_000
	moreTags = 10
)

func newTags(metrics []string) *tags {
	return &tags{metrics: metrics, known: map[string][]string{}, others: map[string]bool{}, found: map[string]bool{}}
}

// metricsOf are the metrics that a tag in a file of a directory is.
func (t *tags) metricsOf(dir string, tag []byte) []string {
	key := dir + "\x00" + string(tag)
	if metrics, ok := t.known[key]; ok {
		return metrics
	}
	metrics := matching(t.metrics, dir, string(tag))
	for _, m := range metrics {
		t.found[m] = true
	}
	if len(metrics) == 0 && len(t.others) < moreTags {
		t.others[clean(tag)] = true
	}
	if len(t.known) < maxTags {
		t.known[key] = metrics
	}
	return metrics
}

// matching returns the metrics that a tag is: that of its name, or of its name
// behind the last parts of the directory, as in train/accuracy. TensorFlow 1
// adds a number to a tag that is taken, as in accuracy_1, which counts unless it
// is a metric by itself.
func matching(metrics []string, dir, tag string) []string {
	var found []string
	for _, name := range []string{tag, withoutNumber(tag)} {
		for _, m := range metrics {
			if names(m, dir, name) && !slices.Contains(found, m) {
				found = append(found, m)
			}
		}
		if len(found) > 0 {
			break
		}
	}
	return found
}

func names(metric, dir, tag string) bool {
	if metric == tag {
		return true
	}
	parent, ok := strings.CutSuffix(metric, "/"+tag)
	return ok && strings.HasSuffix(path.Join("/", dir), path.Join("/", parent))
}

// withoutNumber returns a tag without _1 or another number at its end.
func withoutNumber(tag string) string {
	if short := strings.TrimRight(tag, "0123456789"); len(short) < len(tag) && len(short) > 1 {
		if name, ok := strings.CutSuffix(short, "_"); ok {
			return name
		}
	}
	return tag
}

// missing says why the first metric, the objective, was not found; why is ""
// when it was.
func (t *tags) missing() (objective, why string) {
	if len(t.metrics) == 0 || t.found[t.metrics[0]] {
		return "", ""
	}
	objective = t.metrics[0]
	if len(t.others) == 0 {
		return objective, fmt.Sprintf("none has a number under the objective's tag %s", objective)
	}
	return objective, fmt.Sprintf("none has a number under the objective's tag %s, but under: %s",
		objective, shorten(strings.Join(slices.Sorted(maps.Keys(t.others)), ", ")))
}

// shorten keeps a message readable.
func shorten(text string) string {
	const most = 400
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
