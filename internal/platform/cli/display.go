// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"diwan.dev/diwan/internal/platform/cli/progress"
)

// display shows running work to a user.
type display interface {
	// step shows a preparation step before there is work to follow.
	step(text string)
	// open begins to show work.
	open(views []progress.View)
	// event shows an event, with details.
	event(e progress.Event, details []string)
	// note shows a note that is not about the work itself.
	note(text string)
	// draw shows the progress of the work; it is called every interval.
	draw(views []progress.View)
	interval() time.Duration
	// close ends the display, with the last state left on it. More calls do nothing.
	close()
}

// newDisplay chooses by what out is: a block redrawn in place on a terminal, else lines.
func newDisplay(out io.Writer, quiet bool) display {
	switch {
	case quiet:
		return quietDisplay{}
	case isTerminal(out):
		return &terminalDisplay{out: out, screen: progress.NewScreen(out)}
	default:
		return &plainDisplay{out: out}
	}
}

// plainDisplay prints a line for each event, and one for each interval.
type plainDisplay struct {
	out    io.Writer
	opened bool
}

func (d *plainDisplay) line(text string) { fmt.Fprintln(d.out, text) }

func (d *plainDisplay) step(text string) {
	if !d.opened {
		d.line(text + " …")
	}
}

func (d *plainDisplay) open(views []progress.View) {
	if d.opened {
		return
	}
	d.opened = true
	for _, v := range views {
		d.line(progress.Opening(v))
	}
}

func (d *plainDisplay) event(e progress.Event, details []string) {
	d.line(progress.Line(e, progress.Style{}))
	for _, detail := range details {
		d.line("  | " + detail)
	}
}

func (d *plainDisplay) note(text string) { d.line(text) }

func (d *plainDisplay) draw(views []progress.View) {
	for _, v := range views {
		if v.Status.Condition == "" {
			d.line(progress.Summary(v, progress.Style{}))
		}
	}
}

func (d *plainDisplay) interval() time.Duration { return 10 * time.Second }
func (d *plainDisplay) close()                  {}

// terminalDisplay redraws a block in place; failures and notes scroll by above it.
type terminalDisplay struct {
	out    io.Writer
	screen *progress.Screen
	block  []string
	closed bool
}

func (d *terminalDisplay) step(text string) {
	d.block = []string{text + " …"}
	d.screen.Draw(d.block)
}

func (d *terminalDisplay) open(views []progress.View) { d.draw(views) }

func (d *terminalDisplay) event(e progress.Event, details []string) {
	failed := e.Trial != nil && e.Trial.State != progress.Succeeded && e.Trial.State != progress.EarlyStopped
	if !failed && len(details) == 0 {
		return
	}
	style := styleOf(d.out)
	lines := []string{progress.Line(e, style)}
	for _, detail := range details {
		lines = append(lines, "  | "+detail)
	}
	d.screen.Print(lines, d.block)
}

func (d *terminalDisplay) note(text string) { d.screen.Print([]string{text}, d.block) }

func (d *terminalDisplay) draw(views []progress.View) {
	if d.closed {
		return
	}
	block := progress.Block(views, styleOf(d.out))
	if rows := rowsOf(d.out) - 1; rows > 0 && len(block) > rows {
		block = block[:rows]
	}
	if !slices.Equal(block, d.block) {
		d.block = block
		d.screen.Draw(d.block)
	}
}

func (d *terminalDisplay) interval() time.Duration { return 200 * time.Millisecond }

// close removes the block: its content is in the result.
func (d *terminalDisplay) close() {
	if !d.closed {
		d.closed = true
		d.block = nil
		d.screen.Draw(nil)
	}
}

// quietDisplay shows nothing.
type quietDisplay struct{}

func (quietDisplay) step(string)                    {}
func (quietDisplay) open([]progress.View)           {}
func (quietDisplay) event(progress.Event, []string) {}
func (quietDisplay) note(string)                    {}
func (quietDisplay) draw([]progress.View)           {}
func (quietDisplay) interval() time.Duration        { return time.Hour }
func (quietDisplay) close()                         {}

func isTerminal(out any) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb"
}

// styleOf returns what a stream can show: colors on a terminal unless NO_COLOR is set, and
// the terminal's width; non-ASCII characters unless the locale excludes them.
func styleOf(out io.Writer) progress.Style {
	style := progress.Style{ASCII: asciiLocale()}
	if !isTerminal(out) {
		return style
	}
	style.Color = os.Getenv("NO_COLOR") == ""
	style.Width = 80
	if width, _, err := term.GetSize(int(out.(*os.File).Fd())); err == nil && width > 0 {
		style.Width = width
	}
	return style
}

// rowsOf is the height of a terminal; 0 where it is unknown.
func rowsOf(out io.Writer) int {
	_, rows, err := term.GetSize(int(out.(*os.File).Fd()))
	if err != nil {
		return 0
	}
	return rows
}

// asciiLocale reports whether the locale names a character set other than UTF-8.
func asciiLocale() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := os.Getenv(name); value != "" {
			_, charset, named := strings.Cut(strings.ToLower(value), ".")
			return named && !strings.HasPrefix(strings.ReplaceAll(charset, "-", ""), "utf8")
		}
	}
	return false
}
