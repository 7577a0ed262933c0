// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"time"

	"diwan.dev/diwan/internal/platform/imagestore"
)

// transfer shows how far an image has come: in one line that is rewritten on a
// terminal, else in a line every ten seconds.
type transfer struct {
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
func (a *app) transfer(what string) *transfer {
	t := &transfer{out: a.streams.Err, what: what, terminal: isTerminal(a.streams.Err), shown: time.Now()}
	if a.options.quiet {
		t.out = nil
	}
	return t
}

// step shows the progress of a pull.
func (t *transfer) step(p imagestore.Progress) {
	t.show("%d of %d layers, %s of %s", p.Complete, p.Layers, megabytes(p.Bytes), megabytes(p.Total))
}

// bytes shows the progress of a push.
func (t *transfer) bytes(sent, total int64) {
	t.show("%s of %s", megabytes(sent), megabytes(total))
}

// show shows how far it is, unless it did so just now.
func (t *transfer) show(format string, args ...any) {
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

// end ends the line.
func (t *transfer) end() {
	if t.begun {
		fmt.Fprint(t.out, "\r\x1b[K")
	}
}
