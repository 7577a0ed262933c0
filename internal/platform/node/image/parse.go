// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"go.yaml.in/yaml/v3"
)

// file is the form of images.yaml.
type file struct {
	Images []located `yaml:"images"`
}

// located is an entry and the line where it begins.
type located struct {
	Entry `yaml:",inline"`
	line  int
}

// UnmarshalYAML reads an entry and refuses fields that it does not know, which
// the decoder does not do below a custom type.
func (l *located) UnmarshalYAML(n *yaml.Node) error {
	l.line = n.Line
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if err := known(n, entryFields); err != nil {
		return err
	}
	return n.Decode(&l.Entry)
}

// The fields of an entry; a nil value means any content.
var (
	pythonFields = fields{"requirements": nil, "packages": nil, "python": nil}
	entryFields  = fields{
		"image": nil, "python": pythonFields, "files": nil, "path": nil, "env": nil,
		"command": nil, "workingDir": nil, "builtin": nil,
		"runtime": nil, "privileged": nil,
	}
)

type fields map[string]fields

// known reports the first field of a mapping that is not among the wanted ones.
func known(n *yaml.Node, want fields) error {
	if n.Kind != yaml.MappingNode {
		return nil // Decode says what is wrong
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag == "!!merge" {
			continue
		}
		inner, ok := want[key.Value]
		if !ok {
			return fmt.Errorf("line %d: unknown field %q", key.Line, key.Value)
		}
		if inner == nil {
			continue
		}
		if err := known(value, inner); err != nil {
			return err
		}
	}
	return nil
}

// Parse reads the text of an images.yaml. Paths stay as they are written. Unknown
// fields, values of a wrong type and a second document are errors that name the line.
func Parse(text []byte) ([]Entry, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	var f file
	if err := decoder.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("want one YAML document, got several")
	}
	entries := make([]Entry, 0, len(f.Images))
	for _, l := range f.Images {
		if err := l.validate(); err != nil {
			return nil, fmt.Errorf("line %d: %w", l.line, err)
		}
		entries = append(entries, l.Entry)
	}
	return entries, nil
}

// Load reads an images.yaml; a file that does not exist has no entries.
func Load(path string) ([]Entry, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read image table: %w", err)
	}
	entries, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("cannot read image table %s: %w", path, err)
	}
	return entries, nil
}
