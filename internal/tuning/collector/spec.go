// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/observation"
)

// Kind is the source of a trial's metrics, by Katib's names.
type Kind string

// The kinds that a collector knows what to do with.
const (
	// StdOut reads the primary container's output.
	StdOut Kind = "StdOut"
	// File reads a file that the primary container writes.
	File Kind = "File"
	// Events reads TensorFlow event files in a directory.
	Events Kind = "TensorFlowEvent"
	// Prometheus reads a page that the Pod serves.
	Prometheus Kind = "PrometheusMetric"
	// Custom reads nothing: the Pod has a container that reports.
	Custom Kind = "Custom"
	// Push reads nothing: the program reports by itself.
	Push Kind = "Push"
	// None reads nothing.
	None Kind = "None"
)

// Format is how metrics are written, by Katib's names.
type Format string

// The formats. "" is Text.
const (
	Text Format = "TEXT"
	JSON Format = "JSON"
)

// Spec specifies where one trial's metrics come from and which they are.
type Spec struct {
	Trial observation.Trial
	Kind  Kind
	// Path is the absolute path inside the container of the file, for the kind
	// File, or of the directory, for the kind Events.
	Path   string
	Format Format
	// Page is what to get, for the kind Prometheus.
	Page *corev1.HTTPGetAction
	// Filters are regular expressions with two groups, name and value, for the
	// format TEXT; none stands for DefaultFilter.
	Filters []string
	// Metrics are the names of the metrics to store; others are left out.
	Metrics []string
	// Container is the name of the primary container, PodLabels the labels of
	// the Pods that count.
	Container string
	PodLabels map[string]string
}

// lines returns what cuts lines of the spec's format, up to max bytes each, and
// what reads them, and what else they report.
func (s *Spec) lines(max int) (framer, parser, *others, error) {
	others := newOthers(s.Metrics)
	switch s.Format {
	case Text, "":
		p, err := newText(s.Metrics, s.Filters, others)
		return &lines{breaks: "\n\r", max: max}, p, others, err
	case JSON:
		return &lines{breaks: "\n", max: max}, &jsonLines{s.Metrics, others}, others, nil
	}
	return nil, nil, nil, fmt.Errorf("unknown format %q: want TEXT or JSON", s.Format)
}
