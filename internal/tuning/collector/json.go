// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"diwan.dev/diwan/observation"
)

// timestampKey is the key of a line's timestamp.
const timestampKey = "timestamp"

// jsonLines is the parser of the format JSON: an object a line, with metrics
// by name.
type jsonLines struct {
	metrics []string
	others  *others
}

func (p *jsonLines) parse(points []observation.Point, line []byte, at time.Time) []observation.Point {
	line = bytes.TrimSpace(line)
	if !isObject(line) {
		return points
	}
	values := map[string]gjson.Result{} // of a key that comes twice, the last
	gjson.ParseBytes(line).ForEach(func(key, value gjson.Result) bool {
		values[key.Str] = value
		return true
	})
	if stamp, ok := values[timestampKey]; ok {
		at = jsonTime(stamp, at)
	}
	if p.others.search() {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if name != timestampKey && !slices.Contains(p.metrics, name) {
				p.others.other([]byte(name), []byte(jsonValue(values[name])))
			}
		}
	}
	for _, metric := range p.metrics {
		if value := jsonValue(values[metric]); value != "" {
			p.others.metric(metric)
			points = append(points, observation.Point{Time: at, Metric: metric, Value: value})
		}
	}
	return points
}

// maxNesting bounds the depth of an object, which is read by recursion, by the
// number of its brackets.
const maxNesting = 100_000

// isObject reports whether a line is a JSON object, NaN and infinities as
// Python writes them allowed.
func isObject(line []byte) bool {
	if len(line) < 2 || line[0] != '{' || line[len(line)-1] != '}' {
		return false
	}
	if bytes.Count(line, []byte("["))+bytes.Count(line, []byte("{")) > maxNesting {
		return false
	}
	return gjson.ValidBytes(line) || gjson.ValidBytes(withoutSpecials(line))
}

// withoutSpecials returns a line with a number in the place of each NaN and
// Infinity outside of strings.
func withoutSpecials(line []byte) []byte {
	plain := make([]byte, 0, len(line))
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quoted && c == '\\' && i+1 < len(line):
			plain = append(plain, c)
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case bytes.HasPrefix(line[i:], []byte("NaN")):
			plain = append(plain, '0')
			i += len("NaN") - 1
			continue
		case bytes.HasPrefix(line[i:], []byte("Infinity")):
			plain = append(plain, '0')
			i += len("Infinity") - 1
			continue
		}
		plain = append(plain, line[i])
	}
	return plain
}

// jsonValue returns the text of a string or number, "" for what is neither.
func jsonValue(v gjson.Result) string {
	switch v.Type {
	case gjson.String:
		return clean([]byte(v.Str))
	case gjson.Number:
		return clean([]byte(v.Raw))
	}
	return ""
}

// jsonTime reads a timestamp, a text in the format of RFC 3339 or a number of
// seconds since 1970, or returns another time if it is neither.
func jsonTime(v gjson.Result, other time.Time) time.Time {
	switch v.Type {
	case gjson.String:
		return orTime(v.Str, other)
	case gjson.Number:
		seconds, fraction := math.Modf(v.Num)
		if math.Abs(seconds) > 1e12 || math.IsNaN(seconds) {
			return other
		}
		// A float64 holds today's seconds to about a tenth of a microsecond.
		return storable(time.Unix(int64(seconds), int64(math.Round(fraction*1e6))*1000).UTC(), other)
	}
	return other
}
