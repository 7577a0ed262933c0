// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// readLightGBM reads the text that Booster.save_model writes: a header of key=value
// lines, the trees, the importances and the parameters.
func readLightGBM(r *reading, f *file) error {
	lines := &lineReader{f: f, in: f.stream(0, f.size)}
	header := map[string]string{}
	trees := &Trees{Booster: "gbdt"}
	const (
		inHeader = iota
		inTrees
		atEnd
		inParameters
	)
	part := inHeader
	for {
		wanted := func(key string) bool {
			switch part {
			case inHeader:
				return true
			case inTrees:
				return key == "Tree" || key == "num_leaves"
			}
			return false
		}
		key, value, err := lines.next(wanted)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return f.fail(lines.at, err)
		}
		switch {
		case key == "Tree":
			part = inTrees
			if n, err := strconv.ParseInt(value, 10, 64); err != nil || n != trees.Count {
				return f.errorf(lines.at, "tree %q comes where tree %d should", value, trees.Count)
			}
			trees.Count++
		case key == "num_leaves" && part == inTrees:
			leaves, err := strconv.ParseInt(value, 10, 32)
			if err != nil || leaves < 1 {
				return f.errorf(lines.at, "tree %d has %q leaves", trees.Count-1, value)
			}
			trees.Nodes += 2*leaves - 1
		case key == "end of trees":
			part = atEnd
		case key == "parameters:":
			part = inParameters
		case part == inParameters && strings.HasPrefix(key, "[boosting: "):
			trees.Booster = strings.TrimSuffix(strings.TrimPrefix(key, "[boosting: "), "]")
		case part == inHeader && key != "":
			if _, twice := header[key]; twice {
				return f.errorf(lines.at, "%q occurs twice", key)
			}
			if err := r.hold(int64(len(key)) + 64); err != nil {
				return f.fail(lines.at, err)
			}
			header[key] = value
		}
	}
	if part < atEnd {
		return f.errorf(f.size, "it ends before the line \"end of trees\": it is truncated")
	}
	return lightGBMHeader(r, f, header, trees)
}

func lightGBMHeader(r *reading, f *file, header map[string]string, trees *Trees) error {
	integer := func(key string, least int64) (int64, error) {
		n, err := strconv.ParseInt(header[key], 10, 32)
		if err != nil || n < least {
			return 0, f.errorf(-1, "%s is %q", key, header[key])
		}
		return n, nil
	}
	last, err := integer("max_feature_idx", -1)
	if err != nil {
		return err
	}
	outputs, err := integer("num_class", 1)
	if err != nil {
		return err
	}
	trees.Features = last + 1
	r.sig.FormatVersion = header["version"]
	r.sig.Producer = "lightgbm"
	if sizes, given := header["tree_sizes"]; given && int64(len(strings.Fields(sizes))) != trees.Count {
		return f.errorf(-1, "it has %d trees and claims %d", trees.Count, len(strings.Fields(sizes)))
	}
	r.sig.Features = strings.Fields(header["feature_names"])
	if n := int64(len(r.sig.Features)); n != trees.Features {
		return f.errorf(-1, "it names %d features and has %d", n, trees.Features)
	}
	if _, averaged := header["average_output"]; averaged {
		trees.Booster = "rf"
	}
	trees.Objective, _, _ = strings.Cut(header["objective"], " ")
	shape := Fixed(-1)
	switch {
	case outputs > 1:
		trees.Classes, shape = outputs, Fixed(-1, outputs)
	case trees.Objective == "binary":
		trees.Classes = 2
	}
	r.sig.setMetadata("objective", header["objective"])
	r.sig.Trees = trees
	r.sig.Inputs = []Tensor{{Name: "features", Type: "float64", Shape: Fixed(-1, trees.Features)}}
	r.sig.Outputs = []Tensor{{Name: "prediction", Type: "float64", Shape: shape}}
	return nil
}

// lineReader reads lines of the form key=value.
type lineReader struct {
	f  *file
	in *bufio.Reader
	at int64
}

// longKey is the longest key, or line without "=", in bytes.
const longKey = 1024

// next returns the next line, with the value of a key that is wanted. Values that are not
// are skipped whatever their length, and so is what is beyond longKey in a line without "=".
func (l *lineReader) next(wanted func(key string) bool) (key, value string, err error) {
	var text []byte
	var skip, inValue bool
	for {
		c, err := l.in.ReadByte()
		if errors.Is(err, io.EOF) && (len(key) > 0 || len(text) > 0) {
			break
		}
		if err != nil {
			return "", "", err
		}
		l.at++
		if c == 0 {
			return "", "", errors.New("a zero byte in a text file")
		}
		if c == '\n' {
			break
		}
		if !inValue && c == '=' {
			key, inValue, text = string(text), true, nil
			skip = !wanted(key)
			continue
		}
		if !inValue && len(text) == longKey {
			skip = true
		}
		if skip {
			continue
		}
		if inValue {
			if err := l.f.r.hold(1); err != nil {
				return "", "", fmt.Errorf("the value of %q: %w", key, err)
			}
		}
		text = append(text, c)
	}
	if err := l.f.r.visit(); err != nil {
		return "", "", err
	}
	line := strings.TrimRight(string(text), "\r")
	if inValue {
		return key, line, nil
	}
	return line, "", nil
}
