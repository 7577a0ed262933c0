// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"

	"diwan.dev/diwan/observation"
)

// Kind says where the metrics of a trial come from, by Katib's names.
type Kind string

// The kinds that a collector knows what to do with.
const (
	// StdOut reads the primary container's output.
	StdOut Kind = "StdOut"
	// File reads a file that the primary container writes.
	File Kind = "File"
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

// Spec says where one trial's metrics come from and which they are.
type Spec struct {
	Trial observation.Trial
	Kind  Kind
	// Path is the absolute path of the file, inside the container, for the
	// kind File.
	Path   string
	Format Format
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

// parser returns the parser of the spec's format, and the bytes that end its
// lines.
func (s *Spec) parser() (p parser, breaks string, err error) {
	switch s.Format {
	case Text, "":
		p, err := newText(s.Metrics, s.Filters)
		return p, "\n\r", err
	case JSON:
		return &jsonLines{s.Metrics}, "\n", nil
	}
	return nil, "", fmt.Errorf("format %q is not known: want TEXT or JSON", s.Format)
}
