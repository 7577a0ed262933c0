// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"diwan.dev/diwan/observation"
)

type pair struct{ Name, Value string }

func pairs(f filter, line []byte) []pair {
	var found []pair
	f(line, func(name, value []byte) { found = append(found, pair{string(name), string(value)}) })
	return found
}

// matches returns what DefaultFilter, run by package regexp, finds.
func matches(r *regexp.Regexp, line []byte) []pair {
	var found []pair
	for _, m := range r.FindAllSubmatch(line, -1) {
		found = append(found, pair{string(m[1]), string(m[2])})
	}
	return found
}

// TestDefaultFilter compares findDefault with the regular expression that it
// stands for, on lines full of near misses. Words are left to another test.
func TestDefaultFilter(t *testing.T) {
	t.Parallel()
	r := regexp.MustCompile(DefaultFilter)
	line := rapid.StringOfN(rapid.RuneFrom([]rune("ab|-_ =+.eE019\t\r\n{:é")), 0, 40, -1)
	rapid.Check(t, func(rt *rapid.T) {
		l := []byte(line.Draw(rt, "line"))
		if diff := cmp.Diff(matches(r, l), pairs(findDefault, l)); diff != "" {
			rt.Errorf("%q: -regexp, +findDefault:\n%s", l, diff)
		}
	})
}

func FuzzDefaultFilter(f *testing.F) {
	for _, line := range []string{
		"loss=0.3", "accuracy=.98", "Score=-7.53e-05", "a = +1.E5", "x=nan", "x = -inf,y=Infinity", "a=b=c=1", "==", "a=1e", "=5", "a|b-c_d =\t7", "x=infinit", "a=infb=2",
	} {
		f.Add([]byte(line))
	}
	r := regexp.MustCompile(DefaultFilter)
	f.Fuzz(func(t *testing.T, line []byte) {
		plain := strings.NewReplacer("n", "x", "N", "x", "i", "x", "I", "x").Replace(string(line)) // no words
		if diff := cmp.Diff(matches(r, []byte(plain)), pairs(findDefault, []byte(plain))); diff != "" {
			t.Errorf("%q: -regexp, +findDefault:\n%s", plain, diff)
		}
		pairs(findDefault, line) // must end
	})
}

// FuzzFilter checks that no expression of a user's, on no line, yields more than
// parts of the line, and that DefaultFilter is recognized.
func FuzzFilter(f *testing.F) {
	f.Add(DefaultFilter, []byte("loss=0.3"))
	f.Add(`(\w+):(.*)`, []byte("a:b c:d"))
	f.Add(`(a)?(b)?`, []byte("ab\xffb"))
	f.Add(`(?s)(^|.)(.*?)$`, []byte("\n=\n"))
	f.Add(`(()|[^=]*)=?(x{0,999})`, []byte("==xx"))
	f.Fuzz(func(t *testing.T, expression string, line []byte) {
		if len(expression) > 200 || len(line) > 2000 {
			return
		}
		filter, err := newFilter(expression)
		if err != nil {
			return
		}
		for _, p := range pairs(filter, line) {
			if !strings.Contains(string(line), p.Name) || !strings.Contains(string(line), p.Value) {
				t.Errorf("%q on %q finds %+v", expression, line, p)
			}
		}
		fuzzLine(t, expression, line)
	})
}

// fuzzLine has a parser with a filter read a line.
func fuzzLine(t *testing.T, expression string, line []byte) {
	spec := Spec{Metrics: []string{"loss"}, Filters: []string{expression}}
	_, p, _, err := spec.lines(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	batch := observation.Batch{Source: "main", To: int64(len(line)) + 1, Points: p.parse(nil, line, now())}
	if err := batch.Check(); err != nil {
		t.Errorf("%q on %q: %v", expression, line, err)
	}
}

func TestDefaultFilterWords(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		line   string
		want   []pair
	}{
		"NaN":      {"A diverged program prints nan, in the spelling of its language.", "loss=nan acc = NaN, f1=NAN", []pair{{"loss", "nan"}, {"acc", "NaN"}, {"f1", "NAN"}}},
		"Infinity": {"Infinities have signs.", "a=inf b=-Infinity c=+INF", []pair{{"a", "inf"}, {"b", "-Infinity"}, {"c", "+INF"}}},
		"Longer":   {"A word that only begins so is none.", "a=nanny b=infinite c=nan-2", []pair{{"a", ""}, {"b", ""}, {"c", ""}}},
		"Word":     {"Other words are no values.", "state=running", []pair{{"state", ""}}},
	}
	for name, tc := range tests {
		if diff := cmp.Diff(tc.want, pairs(findDefault, []byte(tc.line))); diff != "" {
			t.Errorf("%s: %s -want, +got:\n%s", name, tc.reason, diff)
		}
	}
}

func TestNewFilter(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		`([`:         "cannot parse filter",
		`(\w+)=\d+`:  "want two groups",
		`loss=(\d+)`: "want two groups",
	} {
		if _, err := newFilter(expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("newFilter(%q): got %v, want an error that says %q", expression, err, want)
		}
	}
}
