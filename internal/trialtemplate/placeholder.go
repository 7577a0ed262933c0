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

// unquote takes away the quotes around a placeholder that is the whole value of
// an argument. Katib runs every trial by a shell, which does that; here there
// is none.
func unquote(text string) string { return quotedArgument.ReplaceAllString(text, "$1$2") }

// expandTree returns a copy of a JSON tree with every string expanded, keys of
// objects included, and quotes for a shell taken away.
func expandTree(node any, value func(name string) (string, bool)) any {
	switch n := node.(type) {
	case string:
		return expand(unquote(n), value)
	case map[string]any:
		out := make(map[string]any, len(n))
		for k, v := range n {
			out[expand(k, value)] = expandTree(v, value)
		}
		return out
	case []any:
		out := make([]any, len(n))
		for i, v := range n {
			out[i] = expandTree(v, value)
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
	collect := func(name string) (string, bool) {
		names = append(names, name)
		return "", false
	}
	if t.text != "" {
		expand(t.text, collect)
	} else {
		expandTree(t.tree.Object, collect)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
