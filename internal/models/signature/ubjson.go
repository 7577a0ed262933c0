// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ubjson reads the whole file as a Universal Binary JSON document (draft 12,
// https://ubjson.org), of which a selection is kept.
func (f *file) ubjson(keep selection) (document, error) {
	p := &ubjsonReader{budget: f.r.budget, in: f.stream(0, f.size), keep: keep, size: f.size}
	value, err := p.value("", 0, true, 0)
	if err == nil && p.at < p.size {
		err = errors.New("something follows the end of the document")
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errTruncated
	}
	if err != nil {
		return nil, f.fail(p.at, err)
	}
	return value, nil
}

type ubjsonReader struct {
	*budget
	in       *bufio.Reader
	keep     selection
	at, size int64
}

// ubjsonWidths are the types of numbers with their size in bytes.
var ubjsonWidths = map[byte]int{'i': 1, 'U': 1, 'I': 2, 'l': 4, 'L': 8, 'd': 4, 'D': 8, 'C': 1, 'Z': 0, 'T': 0, 'F': 0}

func (p *ubjsonReader) byte() (byte, error) {
	c, err := p.in.ReadByte()
	p.at++
	return c, err
}

func (p *ubjsonReader) take(n int) (uint64, error) {
	var data [8]byte
	if _, err := io.ReadFull(p.in, data[8-n:]); err != nil {
		return 0, err
	}
	p.at += int64(n)
	return binary.BigEndian.Uint64(data[:]), nil
}

func (p *ubjsonReader) skip(n int64) error {
	if n > p.size-p.at {
		return fmt.Errorf("an item claims %d bytes, more than the rest of the file", n)
	}
	for n > 0 {
		step, err := p.in.Discard(int(min(n, 1<<20)))
		p.at += int64(step)
		n -= int64(step)
		if err != nil {
			return err
		}
	}
	return nil
}

// length is a number of bytes or items.
func (p *ubjsonReader) length() (int64, error) {
	kind, err := p.byte()
	if err != nil {
		return 0, err
	}
	if !strings.ContainsRune("iUIlL", rune(kind)) {
		return 0, fmt.Errorf("%q where the type of a length should be", kind)
	}
	text, err := p.number(kind)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err == nil && n < 0 {
		err = fmt.Errorf("a length is %d", n)
	}
	return n, err
}

func (p *ubjsonReader) number(kind byte) (number, error) {
	width := ubjsonWidths[kind]
	value, err := p.take(width)
	if err != nil {
		return "", err
	}
	switch kind {
	case 'd':
		return number(strconv.FormatFloat(float64(math.Float32frombits(uint32(value))), 'g', -1, 32)), nil
	case 'D':
		return number(strconv.FormatFloat(math.Float64frombits(value), 'g', -1, 64)), nil
	case 'U':
		return number(strconv.FormatUint(value, 10)), nil
	}
	shift := 64 - 8*width
	return number(strconv.FormatInt(int64(value<<shift)>>shift, 10)), nil
}

func (p *ubjsonReader) string(kept bool) (string, error) {
	n, err := p.length()
	if err != nil {
		return "", err
	}
	if n > p.size-p.at {
		return "", fmt.Errorf("a text claims %d bytes, more than the rest of the file", n)
	}
	if !kept {
		return "", p.skip(n)
	}
	if err := p.hold(n); err != nil {
		return "", err
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(p.in, text); err != nil {
		return "", err
	}
	p.at += n
	if !utf8.Valid(text) {
		return "", errors.New("a text is not UTF-8")
	}
	return string(text), nil
}

// value reads a value whose type is kind, or is read first if that is 0.
func (p *ubjsonReader) value(path string, depth int, kept bool, kind byte) (document, error) {
	if err := p.visit(); err != nil {
		return nil, err
	}
	if kept {
		if err := p.hold(48); err != nil {
			return nil, err
		}
	}
	for first := true; kind == 0 && first || kind == 'N'; first = false {
		var err error
		if kind, err = p.byte(); err != nil {
			return nil, err
		}
	}
	switch kind {
	case 'Z':
		return nil, nil
	case 'T', 'F':
		return kind == 'T', nil
	case 'i', 'U', 'I', 'l', 'L', 'd', 'D':
		return p.number(kind)
	case 'C':
		c, err := p.byte()
		return string(rune(c)), err
	case 'S':
		text, err := p.string(kept)
		return text, err
	case 'H':
		text, err := p.string(kept)
		return number(text), err
	case '[', '{':
		if err := p.nest(depth + 1); err != nil {
			return nil, err
		}
		return p.container(path, depth+1, kept, kind == '{')
	}
	return nil, fmt.Errorf("%q is no type of a value", kind)
}

// container reads an array or an object; they may begin with the type of all items
// and with their number.
func (p *ubjsonReader) container(path string, depth int, kept, named bool) (document, error) {
	closing, itemPath, keepItems := byte(']'), "", kept
	if named {
		closing = '}'
	} else if kept {
		itemPath = join(path, "[]")
		keepItems = p.keep(itemPath)
	}
	first, err := p.byte()
	if err != nil {
		return nil, err
	}
	var kind byte
	if first == '$' {
		if kind, err = p.byte(); err != nil {
			return nil, err
		}
		if first, err = p.byte(); err != nil {
			return nil, err
		}
		if first != '#' {
			return nil, errors.New("a container with a type has no number of items")
		}
	}
	count := int64(-1)
	if first == '#' {
		if count, err = p.length(); err != nil {
			return nil, err
		}
		width, fixed := ubjsonWidths[kind]
		if !fixed || named {
			width = 1 // at least: a type, or a name's length
		}
		if width > 0 && count > (p.size-p.at)/int64(width) {
			return nil, fmt.Errorf("a container claims %d items, more than the rest of the file holds", count)
		}
		if fixed && !named && !keepItems {
			return omitted{count}, p.skip(count * int64(width))
		}
	}
	list, members, items := []document{}, object{}, int64(0)
	for ; items != count; items++ {
		if count < 0 {
			if items > 0 {
				if first, err = p.byte(); err != nil {
					return nil, err
				}
			}
			for first == 'N' {
				if first, err = p.byte(); err != nil {
					return nil, err
				}
			}
			if first == closing {
				break
			}
		}
		if !named {
			of := kind
			if count < 0 {
				of = first
			}
			value, err := p.value(itemPath, depth, keepItems, of)
			if err != nil {
				return nil, err
			}
			if keepItems {
				list = append(list, value)
			}
			continue
		}
		if count < 0 {
			if err := p.in.UnreadByte(); err != nil {
				return nil, err
			}
			p.at--
		}
		name, err := p.string(kept)
		if err != nil {
			return nil, err
		}
		below := ""
		if kept {
			below = join(path, name)
		}
		value, err := p.value(below, depth, kept && p.keep(below), kind)
		if err != nil {
			return nil, err
		}
		if kept {
			if _, twice := members[name]; twice {
				return nil, fmt.Errorf("the name %q occurs twice", name)
			}
			members[name] = value
		}
	}
	switch {
	case named && kept:
		return members, nil
	case !named && keepItems:
		return list, nil
	}
	return omitted{items}, nil
}
