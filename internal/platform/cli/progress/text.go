// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/width"
)

// Style is what the output device can show.
type Style struct {
	// Width is the number of columns; 0 is no limit.
	Width int
	// Color is whether ANSI colours may be used.
	Color bool
	// ASCII is whether characters outside of ASCII must not be used.
	ASCII bool
}

// The colours in use, as ANSI parameters.
const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
)

func (s Style) paint(color, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// pick is the first text where it can be shown, else the second.
func (s Style) pick(text, ascii string) string {
	if s.ASCII {
		return ascii
	}
	return text
}

// Clean makes text from outside harmless to a terminal: control characters and invalid bytes are
// replaced, white space becomes blanks.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return '�'
		default:
			return r
		}
	}, strings.ToValidUTF8(text, "�"))
}

// fit cuts text to a number of columns, the last of which becomes an ellipsis. Colours count
// nothing and are kept.
func (s Style) fit(text string) string {
	if s.Width <= 0 || columns(text) <= s.Width {
		return text
	}
	var b strings.Builder
	used, escape := 0, false
	for _, r := range text {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		case used+cells(r) > s.Width-1:
			if used < s.Width {
				b.WriteString(s.pick("…", "~"))
				used = s.Width
			}
			continue
		default:
			used += cells(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// columns is how many columns text takes, colours not counted.
func columns(text string) int {
	n, escape := 0, false
	for _, r := range text {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		default:
			n += cells(r)
		}
	}
	return n
}

// cells is how many columns a character takes.
func cells(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// short writes a value for a narrow place: numbers get at most four significant digits.
func short(value string) string {
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || len(value) <= 6 {
		return Clean(value)
	}
	if rounded := strconv.FormatFloat(v, 'g', 4, 64); len(rounded) < len(value) {
		return rounded
	}
	return Clean(value)
}

// clock writes a duration as 0:07, 12:34 or 1:02:03.
func clock(d time.Duration) string {
	seconds := int(max(0, d).Round(time.Second).Seconds())
	if seconds >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	}
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}

// roughly writes a duration with the precision that an estimate has: 8s, 40s, 3 min, 2 h.
func roughly(d time.Duration) string {
	seconds := d.Seconds()
	switch {
	case seconds < 10:
		return fmt.Sprintf("%.0fs", math.Max(1, math.Ceil(seconds)))
	case seconds < 90:
		return fmt.Sprintf("%.0fs", math.Ceil(seconds/5)*5)
	case seconds < 90*60:
		return fmt.Sprintf("%.0f min", math.Ceil(seconds/60))
	default:
		return fmt.Sprintf("%.1f h", seconds/3600)
	}
}

// took writes how long something took: 0.8s, 12.3s, 4m 05s, 2h 03m.
func took(d time.Duration) string {
	switch d = max(0, d); {
	case d < time.Minute-50*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm %02ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh %02dm", int(d.Hours()), int(d.Minutes())%60)
	}
}

// count writes a number of things: "1 trial", "2 trials".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// assignments writes parameters on one line.
func assignments(parameters []Parameter, value func(string) string) string {
	parts := make([]string, len(parameters))
	for i, p := range parameters {
		parts[i] = Clean(p.Name) + "=" + value(p.Value)
	}
	return strings.Join(parts, " ")
}
