// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"time"

	"diwan.dev/diwan/internal/platform/imagestore"
)

// Transfer shows how far an image has come: in one line that is rewritten on a
// terminal, else in a line every ten seconds.
type Transfer struct {
	out      io.Writer // nil shows nothing
	what     string
	terminal bool
	shown    time.Time
	begun    bool // a line of the terminal waits for its end
}

const (
	transferRewrite = 100 * time.Millisecond
	transferLine    = 10 * time.Second
)

// transfer begins to show a transfer.
func (a *app) transfer(what string) *Transfer {
	return NewTransfer(a.streams.Err, what, a.options.quiet)
}

// NewTransfer begins to show a transfer of what, unless quietly.
func NewTransfer(out io.Writer, what string, quiet bool) *Transfer {
	t := &Transfer{out: out, what: what, terminal: isTerminal(out), shown: time.Now()}
	if quiet {
		t.out = nil
	}
	return t
}

// Step shows the progress of a pull.
func (t *Transfer) Step(p imagestore.Progress) {
	t.Show("%d of %d layers, %s of %s", p.Complete, p.Layers, megabytes(p.Bytes), megabytes(p.Total))
}

// Bytes shows the progress of a push.
func (t *Transfer) Bytes(sent, total int64) {
	t.Show("%s of %s", megabytes(sent), megabytes(total))
}

// Show shows how far it is, unless it did so just now.
func (t *Transfer) Show(format string, args ...any) {
	every := transferLine
	if t.terminal {
		every = transferRewrite
	}
	if t.out == nil || time.Since(t.shown) < every {
		return
	}
	t.shown = time.Now()
	text := t.what + ": " + fmt.Sprintf(format, args...)
	if t.terminal {
		t.begun = true
		fmt.Fprintf(t.out, "\r\x1b[K%s", text)
		return
	}
	fmt.Fprintln(t.out, text)
}

// End ends the line.
func (t *Transfer) End() {
	if t.begun {
		fmt.Fprint(t.out, "\r\x1b[K")
	}
}
