// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReader checks what settings are read as, and what is said of wrong ones.
func TestReader(t *testing.T) {
	t.Parallel()
	read := map[string]func(*Reader) any{
		"int":    func(r *Reader) any { return r.Int("x", 7, UpTo(1, 9)) },
		"float":  func(r *Reader) any { return r.Float("x", 0.5, OpenUnit) },
		"bool":   func(r *Reader) any { return r.Bool("x", true) },
		"choice": func(r *Reader) any { return r.Choice("x", "a", "b") },
		"seed":   func(r *Reader) any { return r.Seed("x", 1) },
		"text":   func(r *Reader) any { return r.Text("x", "d") },
	}
	for _, tc := range []struct {
		reason, kind string
		text         string // "" is none
		want         any
		err          string
	}{
		{"A setting that is not given has its default.", "int", "", 7, ""},
		{"Blanks around a number do not matter.", "int", " 9 ", 9, ""},
		{"A number out of its range is wrong.", "int", "10", 7, `setting x is "10": want an integer from 1 to 9`},
		{"So is one with a fraction.", "int", "1.5", 7, `setting x is "1.5": want an integer from 1 to 9`},
		{"An exponent is fine.", "float", "1e-3", 1e-3, ""},
		{"The ends of an open range are out of it.", "float", "1", 0.5, `setting x is "1": want a number between 0 and 1`},
		{"What is not a number is in no range.", "float", "NaN", 0.5, `setting x is "NaN": want a number between 0 and 1`},
		{"Python's False is one.", "bool", "False", false, ""},
		{"Other texts are none.", "bool", "no", true, `setting x is "no": want true or false`},
		{"The first choice is the default.", "choice", "", "a", ""},
		{"Another has to be asked for.", "choice", "b", "b", ""},
		{"There are no more.", "choice", "c", "a", `setting x is "c": want one of a, b`},
		{"A seed has 64 bits.", "seed", "18446744073709551615", uint64(18446744073709551615), ""},
		{"It is not negative.", "seed", "-1", uint64(1), `setting x is "-1": want an integer from 0`},
		{"A text is taken as it is.", "text", " t", " t", ""},
	} {
		r := New(nil)
		if tc.text != "" {
			r = New(map[string]string{"x": tc.text})
		}
		if diff := cmp.Diff(tc.want, read[tc.kind](r)); diff != "" {
			t.Errorf("%s %s of %q: -want, +got:\n%s", tc.reason, tc.kind, tc.text, diff)
		}
		got := ""
		if err := r.Err(); err != nil {
			got = err.Error()
		}
		if got != tc.err {
			t.Errorf("%s %s of %q: error %q, want %q", tc.reason, tc.kind, tc.text, got, tc.err)
		}
	}
}

func TestRequire(t *testing.T) {
	t.Parallel()
	r := New(map[string]string{"x": ""})
	r.Require("x", "a text")
	r.Require("y", "a number")
	r.Require("z", "another")
	if err := r.Err(); err == nil || err.Error() != "setting y is missing: want a number\nsetting z is missing: want another" {
		t.Errorf("error is %v", err)
	}
}
