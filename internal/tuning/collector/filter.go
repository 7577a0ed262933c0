// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"fmt"
	"regexp"
)

// DefaultFilter is Katib's default regular expression for metrics in text.
const DefaultFilter = `([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)`

// filter finds the pairs of a name and a value in a line.
type filter func(line []byte, found func(name, value []byte))

// newFilter returns the filter of a regular expression with two groups, the
// name and the value.
func newFilter(expression string) (filter, error) {
	if expression == DefaultFilter {
		return findDefault, nil
	}
	r, err := regexp.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("cannot parse filter: %w", err)
	}
	if r.NumSubexp() < 2 {
		return nil, fmt.Errorf("cannot use filter %q: want two groups in parentheses, the metric's name and its value", expression)
	}
	return func(line []byte, found func(name, value []byte)) {
		for _, at := range r.FindAllSubmatchIndex(line, -1) {
			if at[2] >= 0 && at[4] >= 0 {
				found(bytes.TrimSpace(line[at[2]:at[3]]), line[at[4]:at[5]])
			}
		}
	}, nil
}

// findDefault finds what DefaultFilter matches, some thirty times faster, and
// besides the values nan, inf and infinity, in which DefaultFilter sees an
// empty one.
func findDefault(line []byte, found func(name, value []byte)) {
	for at := 0; at < len(line); {
		start := skipTo(line, at, isName)
		end := skipOver(line, start, isName)
		equals := skipOver(line, end, isSpace)
		if equals == len(line) {
			return
		}
		if line[equals] != '=' {
			at = equals
			continue
		}
		value := skipOver(line, equals+1, isSpace)
		at = endOfNumber(line, value)
		if !hasDigit(line[value:at]) {
			at = endOfWord(line, at)
		}
		found(line[start:end], line[value:at])
	}
}

// endOfNumber returns where [+-]?\d*(\.\d+)?([Ee][+-]?\d+)? ends that begins
// at a place.
func endOfNumber(line []byte, at int) int {
	at = skipSign(line, at)
	at = skipOver(line, at, isDigit)
	if at < len(line) && line[at] == '.' {
		if end := skipOver(line, at+1, isDigit); end > at+1 {
			at = end
		}
	}
	if at < len(line) && (line[at] == 'e' || line[at] == 'E') {
		digits := skipSign(line, at+1)
		if end := skipOver(line, digits, isDigit); end > digits {
			at = end
		}
	}
	return at
}

// endOfWord returns where nan, inf or infinity ends that begins at a place, in
// any case, and the place itself where none does.
func endOfWord(line []byte, at int) int {
	end := skipOver(line, at, isName)
	for _, word := range [][]byte{[]byte("nan"), []byte("inf"), []byte("infinity")} {
		if bytes.EqualFold(line[at:end], word) {
			return end
		}
	}
	return at
}

func skipSign(line []byte, at int) int {
	if at < len(line) && (line[at] == '+' || line[at] == '-') {
		return at + 1
	}
	return at
}

func skipOver(line []byte, at int, is func(byte) bool) int {
	for at < len(line) && is(line[at]) {
		at++
	}
	return at
}

func skipTo(line []byte, at int, is func(byte) bool) int {
	for at < len(line) && !is(line[at]) {
		at++
	}
	return at
}

func hasDigit(text []byte) bool { return skipTo(text, 0, isDigit) < len(text) }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c) || c == '_' || c == '|' || c == '-'
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r' }
