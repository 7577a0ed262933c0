// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// textMessage is a message in protobuf's text format, without its schema: for each
// field its values in their order, texts or messages.
// https://protobuf.dev/reference/protobuf/textformat-spec
type textMessage map[string][]any

// texts are the values of a field that are no messages.
func (m textMessage) texts(name string) []string {
	var texts []string
	for _, v := range m[name] {
		if text, ok := v.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// text is the last value of a field, "" if there is none.
func (m textMessage) text(name string) string {
	texts := m.texts(name)
	if len(texts) == 0 {
		return ""
	}
	return texts[len(texts)-1]
}

// messages are the values of a field that are messages.
func (m textMessage) messages(name string) []textMessage {
	var messages []textMessage
	for _, v := range m[name] {
		if message, ok := v.(textMessage); ok {
			messages = append(messages, message)
		}
	}
	return messages
}

// prototext reads the whole file as a message in text format.
func (f *file) prototext() (textMessage, error) {
	p := &prototextReader{budget: f.r.budget, in: f.stream(0, f.size)}
	message, err := p.message("", 1)
	if err != nil {
		return nil, f.fail(p.at, err)
	}
	return message, nil
}

type prototextReader struct {
	*budget
	in *bufio.Reader
	at int64
}

// longText is the longest name, number or string, in bytes.
const longText = 1 << 20

// token is the next name, number, string (with its quote in front) or sign; "" at the
// end. Comments are passed over.
func (p *prototextReader) token() (string, error) {
	if err := p.visit(); err != nil {
		return "", err
	}
	read := func() (byte, error) {
		c, err := p.in.ReadByte()
		if err == nil {
			p.at++
		}
		return c, err
	}
	var c byte
	var err error
	for comment := false; ; {
		if c, err = read(); errors.Is(err, io.EOF) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		if comment {
			comment = c != '\n'
			continue
		}
		if c == '#' {
			comment = true
			continue
		}
		if !space(c) {
			break
		}
	}
	text := []byte{c}
	switch {
	case c == '"' || c == '\'':
		for {
			next, err := read()
			if errors.Is(err, io.EOF) || next == '\n' {
				return "", errors.New("a string has no end")
			}
			if err != nil {
				return "", err
			}
			if next == c {
				return string(text), p.hold(int64(len(text)))
			}
			if next == '\\' {
				if next, err = read(); err != nil {
					return "", errors.New("a string has no end")
				}
			}
			if text = append(text, next); len(text) > longText {
				return "", fmt.Errorf("a string has more than %d bytes", longText)
			}
		}
	case wordByte(c):
		for {
			next, err := p.in.ReadByte()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return "", err
			}
			if !wordByte(next) {
				p.in.UnreadByte()
				break
			}
			p.at++
			if text = append(text, next); len(text) > longText {
				return "", fmt.Errorf("a word has more than %d bytes", longText)
			}
		}
		return string(text), p.hold(int64(len(text)))
	case strings.IndexByte("{}<>[]:,;", c) >= 0:
		return string(text), nil
	}
	return "", fmt.Errorf("%q belongs to no word", c)
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-' || c == '+' || c == '/'
}

// message reads fields up to the sign that closes it.
func (p *prototextReader) message(closing string, depth int) (textMessage, error) {
	if err := p.nest(depth); err != nil {
		return nil, err
	}
	message := textMessage{}
	for {
		name, err := p.token()
		if err != nil {
			return nil, err
		}
		if name == closing {
			return message, nil
		}
		if name == "," || name == ";" {
			continue
		}
		if name == "" {
			return nil, errors.New("it ends in the middle of a message")
		}
		if !wordByte(name[0]) {
			return nil, fmt.Errorf("%.20q where the name of a field should be", name)
		}
		value, err := p.token()
		if err != nil {
			return nil, err
		}
		colon := value == ":"
		if colon {
			if value, err = p.token(); err != nil {
				return nil, err
			}
		}
		if err := p.values(message, name, value, colon, depth); err != nil {
			return nil, err
		}
	}
}

// values reads what follows a name: a value, or a list of them.
func (p *prototextReader) values(message textMessage, name, value string, colon bool, depth int) error {
	if err := p.hold(96); err != nil {
		return err
	}
	switch {
	case value == "{" || value == "<":
		inner, err := p.message(map[string]string{"{": "}", "<": ">"}[value], depth+1)
		if err != nil {
			return err
		}
		message[name] = append(message[name], inner)
		return nil
	case value == "[":
		if err := p.nest(depth + 1); err != nil {
			return err
		}
		for {
			item, err := p.token()
			if err != nil {
				return err
			}
			switch item {
			case "]":
				return nil
			case ",":
				continue
			}
			if err := p.values(message, name, item, true, depth+1); err != nil {
				return err
			}
		}
	case value == "":
		return errors.New("it ends in the middle of a field")
	case !colon:
		return fmt.Errorf("%.20q follows the name %.40q, where a colon or a message should", value, name)
	case value[0] == '"' || value[0] == '\'':
		message[name] = append(message[name], strings.ToValidUTF8(value[1:], "\ufffd"))
		return nil
	case wordByte(value[0]):
		message[name] = append(message[name], value)
		return nil
	}
	return fmt.Errorf("%.20q where a value should be", value)
}
