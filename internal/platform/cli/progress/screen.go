// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"io"
	"strings"
)

// Screen redraws a block of lines in place at the end of a terminal's scrolled text. It is not
// safe for concurrent use.
type Screen struct {
	out   io.Writer
	drawn int
}

// NewScreen returns a screen on a terminal.
func NewScreen(out io.Writer) *Screen { return &Screen{out: out} }

// Draw replaces the block. No line may be wider than the terminal, nor the block as high as it.
func (s *Screen) Draw(lines []string) { s.write(nil, lines) }

// Print writes lines above the block, where they stay, and draws the block below.
func (s *Screen) Print(above, block []string) { s.write(above, block) }

// write does both in one piece, so that nothing flickers.
func (s *Screen) write(above, block []string) {
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", s.drawn)
	}
	for _, line := range append(above[:len(above):len(above)], block...) {
		b.WriteString(line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	s.drawn = len(block)
	io.WriteString(s.out, b.String()) // a closed terminal shows nothing; the work continues
}
