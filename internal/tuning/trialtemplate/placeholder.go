// SPDX-License-Identifier: Apache-2.0

package trialtemplate

import (
	"regexp"
	"slices"
	"strings"
)

const (
	placeholderOpen  = "${trialParameters."
	placeholderClose = '}'
)

// expand replaces each placeholder in text by what value returns for its name.
// A name for which value reports false stays as it is. A placeholder's name is
// at least one character long and ends at the first closing brace after that.
func expand(text string, value func(name string) (string, bool)) string {
	at := strings.Index(text, placeholderOpen)
	if at < 0 {
		return text
	}
	var out strings.Builder
	for at >= 0 {
		out.WriteString(text[:at])
		rest := text[at+len(placeholderOpen):]
		name, after, ok := cutName(rest)
		if !ok {
			out.WriteString(text[at:])
			return out.String()
		}
		if v, known := value(name); known {
			out.WriteString(v)
		} else {
			out.WriteString(text[at : len(text)-len(after)])
		}
		text = after
		at = strings.Index(text, placeholderOpen)
	}
	out.WriteString(text)
	return out.String()
}

// cutName splits what follows an opened placeholder into its name and the text
// after the closing brace.
func cutName(rest string) (name, after string, ok bool) {
	if len(rest) < 2 {
		return "", "", false
	}
	end := strings.IndexByte(rest[1:], placeholderClose)
	if end < 0 {
		return "", "", false
	}
	return rest[:end+1], rest[end+2:], true
}

// quotedArgument is an argument whose value is in quotes for a shell, as in
// Katib's examples for architectures.
var quotedArgument = regexp.MustCompile(`^(--?[\w.-]+=)"(\$\{trialParameters\.[^}"]+\})"$`)

// quotedObject is an argument that is a JSON object in quotes for a shell, as
// Katib's SDK writes those that tune language models.
var quotedObject = regexp.MustCompile(`^'(\{[^']*\})'$`)

// unquote takes away the quotes around a placeholder that is the whole value of
// an argument, and around an object. Katib runs every trial by a shell, which
// does that; here there is none.
func unquote(text string) string {
	return quotedObject.ReplaceAllString(quotedArgument.ReplaceAllString(text, "$1$2"), "$1")
}

// values are the values of placeholders by name.
type values map[string]value

// value is the value of a placeholder.
type value struct {
	text   string
	absent bool // the trial does not have the parameter
}

// lookup returns the text of a placeholder, if it is known.
func (v values) lookup(name string) (string, bool) {
	found, ok := v[name]
	return found.text, ok
}

// leavesOut reports whether an item of a list says nothing in a trial: it has no
// blanks, and placeholders, all of them for parameters that the trial lacks.
func (v values) leavesOut(item string) bool {
	absent, others := 0, strings.ContainsAny(item, " \t\r\n")
	expand(item, func(name string) (string, bool) {
		if v[name].absent {
			absent++
		} else {
			others = true
		}
		return "", true
	})
	return absent > 0 && !others
}

// expandTree returns a copy of a JSON tree with every string expanded, keys of
// objects included, and quotes for a shell taken away.
func expandTree(node any, v values) any {
	switch n := node.(type) {
	case string:
		return expand(unquote(n), v.lookup)
	case map[string]any:
		out := make(map[string]any, len(n))
		for key, each := range n {
			out[expand(key, v.lookup)] = expandTree(each, v)
		}
		return out
	case []any:
		out := make([]any, 0, len(n))
		for _, each := range n {
			if text, ok := each.(string); ok && v.leavesOut(text) {
				continue
			}
			out = append(out, expandTree(each, v))
		}
		return out
	default:
		return node // numbers, booleans and null are values, not references
	}
}

// namesIn returns the names of the placeholders in a template, sorted, each
// once.
func namesIn(t *Template) []string {
	var names []string
	if t.text != "" {
		names = placeholdersOf(t.text)
	} else {
		names = placeholdersOfTree(t.tree.Object, nil)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func placeholdersOf(text string) (names []string) {
	expand(text, func(name string) (string, bool) {
		names = append(names, name)
		return "", false
	})
	return names
}

func placeholdersOfTree(node any, names []string) []string {
	switch n := node.(type) {
	case string:
		return append(names, placeholdersOf(n)...)
	case map[string]any:
		for key, each := range n {
			names = placeholdersOfTree(each, append(names, placeholdersOf(key)...))
		}
	case []any:
		for _, each := range n {
			names = placeholdersOfTree(each, names)
		}
	}
	return names
}
