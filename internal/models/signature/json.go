// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The documents in models (JSON, UBJSON) may be gigabytes of trees around some lines
// that matter. They are read as a stream into a [document] of which everything else
// is left out.

// selection decides by path ("learner.objective.name", array items as "[]") what of
// a document is kept.
type selection func(path string) bool

// everything keeps a whole document.
func everything(string) bool { return true }

// except leaves out the values at some paths.
func except(paths ...string) selection {
	out := map[string]bool{}
	for _, p := range paths {
		out[p] = true
	}
	return func(path string) bool { return !out[path] }
}

// document is a value of a JSON-like document: nil, bool, string, number, []any of
// documents, object, or omitted for what was not kept.
type document = any

// number is a number as it is written.
type number string

// object is a JSON object. Order is not kept.
type object map[string]document

// omitted stands for an array or object that was not kept.
type omitted struct {
	// Items is the number of its items.
	Items int64
}

// get follows names through objects; nil if there is nothing.
func get(d document, names ...string) document {
	for _, name := range names {
		o, _ := d.(object)
		d = o[name]
	}
	return d
}

// getText is the string at the end of names, or the number as text.
func getText(d document, names ...string) string {
	switch value := get(d, names...).(type) {
	case string:
		return value
	case number:
		return string(value)
	}
	return ""
}

// getInt is the integer at the end of names, which may be written as a string.
func getInt(d document, names ...string) (int64, bool) {
	n, err := strconv.ParseInt(getText(d, names...), 10, 64)
	return n, err == nil
}

// getList is the list at the end of names.
func getList(d document, names ...string) []document {
	list, _ := get(d, names...).([]document)
	return list
}

// getTexts is the list of strings at the end of names.
func getTexts(d document, names ...string) []string {
	var texts []string
	for _, item := range getList(d, names...) {
		texts = append(texts, getText(item))
	}
	return texts
}

// shapeOf is a list of integers as a shape; null and negative ones are unknown.
func shapeOf(list []document) (Shape, error) {
	shape := make(Shape, len(list))
	for i, item := range list {
		shape[i] = Unknown
		if item == nil {
			continue
		}
		n, ok := getInt(item)
		if !ok {
			return nil, fmt.Errorf("dimension %d is no integer", i)
		}
		if n >= 0 {
			shape[i].Size = n
		}
	}
	return shape, nil
}

// json reads a JSON document that is n bytes at an offset. Beyond the standard it
// takes NaN and Infinity, which Python and XGBoost write. Duplicate names are refused:
// readers disagree on which one counts.
func (f *file) json(offset, n int64, keep selection) (document, error) {
	if err := f.span(offset, n, "the document"); err != nil {
		return nil, err
	}
	p := &jsonReader{budget: f.r.budget, in: f.stream(offset, n), keep: keep, at: offset}
	value, err := p.document()
	if err != nil {
		return nil, f.fail(p.at, err)
	}
	return value, nil
}

type jsonReader struct {
	*budget
	in   *bufio.Reader
	keep selection
	at   int64
	text []byte
}

var errTruncated = errors.New("the document ends too early")

func (p *jsonReader) document() (document, error) {
	value, err := p.value("", 0)
	if err != nil {
		return nil, err
	}
	for {
		c, err := p.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return value, nil
		}
		if err != nil {
			return nil, err
		}
		if p.at++; !space(c) {
			return nil, fmt.Errorf("%q follows the end of the document", c)
		}
	}
}

func space(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// byte is the next byte.
func (p *jsonReader) byte() (byte, error) {
	c, err := p.in.ReadByte()
	if errors.Is(err, io.EOF) {
		return 0, errTruncated
	}
	p.at++
	return c, err
}

func (p *jsonReader) unread() {
	p.at--
	p.in.UnreadByte()
}

// token is the next byte that is not white space.
func (p *jsonReader) token() (byte, error) {
	for {
		c, err := p.byte()
		if err != nil || !space(c) {
			return c, err
		}
	}
}

func (p *jsonReader) value(path string, depth int) (document, error) {
	c, err := p.token()
	if err != nil {
		return nil, err
	}
	// What an item costs in memory beside its text.
	if err := p.hold(48); err != nil {
		return nil, err
	}
	if err := p.visit(); err != nil {
		return nil, err
	}
	switch {
	case c == '{':
		return p.object(path, depth+1)
	case c == '[':
		return p.array(path, depth+1)
	case c == '"':
		text, err := p.string()
		return text, err
	default:
		p.unread()
		return p.literal()
	}
}

// skip passes over a value and counts its items. Of what is passed over, brackets and
// strings are checked, numbers are not.
func (p *jsonReader) skip(depth int) (omitted, error) {
	var open []byte
	var items int64
	var quoted, escaped, something bool
	for {
		data, err := p.in.Peek(max(1, p.in.Buffered()))
		if len(data) == 0 {
			if errors.Is(err, io.EOF) {
				err = errTruncated
			}
			return omitted{}, err
		}
		for i, c := range data {
			end := false
			switch {
			case c < ' ' && !space(c) || quoted && c < ' ':
				p.at += int64(i)
				return omitted{}, fmt.Errorf("control character %#x", c)
			case escaped:
				escaped = false
			case quoted:
				escaped = c == '\\'
				quoted = c != '"'
				end = !quoted && len(open) == 0
			case c == '"':
				quoted, something = true, true
			case c == '{' || c == '[':
				something = true
				if err := p.nest(depth + len(open) + 1); err != nil {
					p.at += int64(i)
					return omitted{}, err
				}
				open = append(open, c+2) // the closing one is two characters on
			case len(open) > 0 && c == open[len(open)-1]:
				open = open[:len(open)-1]
				end = len(open) == 0
			case c == '}' || c == ']' || c == ',' && len(open) == 0:
				p.at += int64(i)
				if len(open) > 0 || !something {
					return omitted{}, fmt.Errorf("%q where a value or another bracket should be", c)
				}
				_, err := p.in.Discard(i)
				return omitted{}, err
			case c == ',' && len(open) == 1:
				items++
			case !space(c):
				something = true
			}
			if len(open) == 1 && items == 0 && !space(c) && c != '{' && c != '[' {
				items = 1
			}
			if end {
				p.at += int64(i) + 1
				_, err := p.in.Discard(i + 1)
				return omitted{items}, err
			}
		}
		p.at += int64(len(data))
		if _, err := p.in.Discard(len(data)); err != nil {
			return omitted{}, err
		}
	}
}

func (p *jsonReader) object(path string, depth int) (document, error) {
	if err := p.nest(depth); err != nil {
		return nil, err
	}
	result := object{}
	items := int64(0)
	for {
		c, err := p.token()
		if err != nil {
			return nil, err
		}
		if c == '}' && items == 0 {
			break
		}
		if c != '"' {
			return nil, fmt.Errorf("%q where a name in quotes should be", c)
		}
		name, err := p.string()
		if err != nil {
			return nil, err
		}
		if c, err = p.token(); err != nil {
			return nil, err
		}
		if c != ':' {
			return nil, fmt.Errorf("%q where a colon should be", c)
		}
		below := join(path, name)
		var value document
		if p.keep(below) {
			value, err = p.value(below, depth)
		} else {
			value, err = p.skip(depth)
		}
		if err != nil {
			return nil, err
		}
		items++
		if _, twice := result[name]; twice {
			return nil, fmt.Errorf("the name %q occurs twice", name)
		}
		result[name] = value
		if c, err = p.token(); err != nil {
			return nil, err
		}
		if c == '}' {
			break
		}
		if c != ',' {
			return nil, fmt.Errorf("%q where a comma or a closing brace should be", c)
		}
	}
	return result, nil
}

// join is the path of a name. Paths are short: a selection names none that are not, and
// long names on each level would add up.
func join(path, name string) string {
	if len(path)+len(name) > 200 {
		return "…"
	}
	if path == "" || name == "[]" {
		return path + name
	}
	return path + "." + name
}

func (p *jsonReader) array(path string, depth int) (document, error) {
	if err := p.nest(depth); err != nil {
		return nil, err
	}
	path = join(path, "[]")
	if !p.keep(path) {
		p.unread()
		return p.skip(depth - 1)
	}
	result := []document{}
	for {
		c, err := p.token()
		if err != nil {
			return nil, err
		}
		if c == ']' && len(result) == 0 {
			return result, nil
		}
		p.unread()
		value, err := p.value(path, depth)
		if err != nil {
			return nil, err
		}
		result = append(result, value)
		if c, err = p.token(); err != nil {
			return nil, err
		}
		if c == ']' {
			return result, nil
		}
		if c != ',' {
			return nil, fmt.Errorf("%q where a comma or a closing bracket should be", c)
		}
	}
}

// string reads a string whose opening quote has been read.
func (p *jsonReader) string() (string, error) {
	p.text = p.text[:0]
	escaped, start := false, p.at-1
	for {
		c, err := p.byte()
		if err != nil {
			return "", err
		}
		if c == '"' {
			break
		}
		if c < ' ' {
			return "", fmt.Errorf("control character %#x in a string", c)
		}
		p.text = append(p.text, c)
		if c == '\\' {
			escaped = true
			if c, err = p.byte(); err != nil {
				return "", err
			}
			p.text = append(p.text, c)
		}
		if int64(len(p.text)) > p.memory {
			return "", &LimitError{"Memory", p.limits.Memory}
		}
	}
	if err := p.hold(int64(len(p.text))); err != nil {
		return "", err
	}
	if !escaped {
		if !utf8.Valid(p.text) {
			return "", fmt.Errorf("the string at byte %d is not UTF-8", start)
		}
		return string(p.text), nil
	}
	var text string
	if err := json.Unmarshal(fmt.Appendf(nil, `"%s"`, p.text), &text); err != nil {
		return "", fmt.Errorf("the string at byte %d: %w", start, err)
	}
	return text, nil
}

// literal reads a number or a word.
func (p *jsonReader) literal() (document, error) {
	p.text = p.text[:0]
	for {
		c, err := p.in.ReadByte()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if space(c) || strings.IndexByte(",:]}[{\"", c) >= 0 {
			p.in.UnreadByte()
			break
		}
		p.at++
		if p.text = append(p.text, c); len(p.text) > 400 {
			return nil, fmt.Errorf("%.20q… is neither a number nor true, false or null", p.text)
		}
	}
	switch string(p.text) {
	case "":
		c, err := p.byte()
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%q where a value should be", c)
	case "null":
		return nil, nil
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "NaN", "Infinity", "-Infinity":
		return number(p.text), nil
	}
	if c := p.text[0]; c != '-' && (c < '0' || c > '9') {
		return nil, fmt.Errorf("%q is neither a number nor true, false or null", p.text)
	}
	if !json.Valid(p.text) {
		return nil, fmt.Errorf("%q is no number", p.text)
	}
	return number(p.text), nil
}
