// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Parse returns the objects of one file's contents. The file and directory of source are taken
// over into every object; its document and line are counted.
func Parse(data []byte, source Source) ([]Object, error) {
	var objects []Object
	for _, doc := range split(data) {
		source.Line = doc.line
		if blank(doc.text) {
			continue
		}
		source.Document++
		parsed, err := parseDocument(doc, source)
		if err != nil {
			return nil, err
		}
		objects = append(objects, parsed...)
	}
	return objects, nil
}

// parseDocument returns the objects of one document: one, or the items of a List.
func parseDocument(doc document, source Source) ([]Object, error) {
	text, err := yaml.YAMLToJSONStrict(doc.text)
	if err != nil && overrides(doc.text) {
		text, err = yaml.YAMLToJSON(doc.text)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot parse %s: %s", source, explain(err, doc.line))
	}
	var content any
	if err := utiljson.Unmarshal(text, &content); err != nil {
		return nil, fmt.Errorf("cannot parse %s: %w", source, err)
	}
	if content == nil {
		return nil, nil
	}
	fields, ok := content.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("cannot parse %s: a document must be an object with apiVersion and kind, not %s", source, describe(content))
	}
	return objectsOf(&unstructured.Unstructured{Object: fields}, source)
}

// overrides reports whether no key is given twice, but for those that << brings and that are given
// another value: what the strict reader of YAML takes for an error. As in kubectl, the later counts.
func overrides(text []byte) bool {
	var content any
	return yamlv3.Unmarshal(text, &content) == nil
}

// objectsOf checks an object's head and replaces a List by its items.
func objectsOf(object *unstructured.Unstructured, source Source) ([]Object, error) {
	if err := checkHead(object.Object); err != nil {
		return nil, fmt.Errorf("cannot use %s: %w", source, err)
	}
	if !object.IsList() {
		return []Object{{Unstructured: object, Source: source}}, nil
	}
	items, ok := object.Object["items"].([]any)
	if !ok {
		return nil, fmt.Errorf("cannot use %s: items must be a list of objects", source)
	}
	var objects []Object
	for i, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("cannot use %s: items[%d] must be an object, not %s", source, i, describe(item))
		}
		inner, err := objectsOf(&unstructured.Unstructured{Object: fields}, source)
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		objects = append(objects, inner...)
	}
	return objects, nil
}

// checkHead holds an object to having apiVersion, kind and, unless it is a List, a name.
func checkHead(fields map[string]any) error {
	for _, name := range []string{"apiVersion", "kind"} {
		switch value := fields[name].(type) {
		case string:
			if value == "" {
				return fmt.Errorf("%s is empty", name)
			}
		case nil:
			return fmt.Errorf("%s is missing: every object has an apiVersion and a kind", name)
		default:
			return fmt.Errorf("%s must be a string, not %s", name, describe(value))
		}
	}
	if _, list := fields["items"]; list && strings.HasSuffix(fields["kind"].(string), "List") {
		return nil
	}
	metadata, ok := fields["metadata"].(map[string]any)
	if !ok {
		return errors.New("metadata is missing: give the object a metadata.name")
	}
	for _, name := range []string{"name", "generateName"} {
		switch value := metadata[name].(type) {
		case nil:
		case string:
			if value != "" {
				return nil
			}
		default:
			return fmt.Errorf("metadata.%s must be a string, not %s: put it in quotes", name, describe(value))
		}
	}
	return errors.New("metadata.name is missing")
}

// document is a part of a file and the line, from 1, where it begins.
type document struct {
	text []byte
	line int
}

// split cuts a file at the lines that begin with "---", as YAML does.
func split(data []byte) []document {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	documents := []document{{line: 1}}
	line := 0
	for text := range bytes.Lines(data) {
		line++
		if rest, ok := bytes.CutPrefix(text, []byte("---")); ok && blank(rest) {
			documents = append(documents, document{line: line + 1})
			continue
		}
		last := &documents[len(documents)-1]
		last.text = append(last.text, text...)
	}
	return documents
}

// blank reports whether YAML text holds nothing but space and comments.
func blank(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

var lineNumber = regexp.MustCompile(`\bline (\d+)`)

// explain rewrites a YAML error: line numbers count from the start of the file, on one line.
func explain(err error, first int) string {
	text := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	text = strings.TrimPrefix(text, "yaml: ")
	text = lineNumber.ReplaceAllStringFunc(text, func(match string) string {
		n, err := strconv.Atoi(strings.TrimPrefix(match, "line "))
		if err != nil {
			return match
		}
		return "line " + strconv.Itoa(n+first-1)
	})
	return strings.Join(strings.Fields(text), " ")
}

// describe names the type of a decoded value in a user's words.
func describe(value any) string {
	switch value := value.(type) {
	case string:
		return "text"
	case bool:
		return fmt.Sprintf("true or false (%v)", value)
	case int64, float64:
		return fmt.Sprintf("a number (%v)", value)
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		return "nothing"
	}
}
