// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
)

// drain bounds how long output is read after a command has ended while a
// process that it left behind holds the pipe open.
const drain = 500 * time.Millisecond

// Session joins a command's files with streams.
type Session struct {
	Streams container.Streams
	// Terminal opens a terminal; nil opens one of this machine.
	Terminal func() (master, slave *os.File, err error)

	theirs []*os.File // closed once the command has them
	ours   []*os.File // closed at the end
	copies []func()
	output sync.WaitGroup
}

// Open makes the files and puts them into attr.
func (s *Session) Open(attr *os.ProcAttr) (err error) {
	defer func() {
		if err != nil {
			s.Started(false)
		}
	}()
	if s.Streams.TTY {
		return s.openTerminal(attr)
	}
	attr.Files = make([]*os.File, 3)
	if attr.Files[0], err = s.input(s.Streams.Stdin); err != nil {
		return err
	}
	if attr.Files[1], err = s.outputTo(s.Streams.Stdout); err != nil {
		return err
	}
	if same(s.Streams.Stdout, s.Streams.Stderr) {
		attr.Files[2] = attr.Files[1] // one writer is for one goroutine
		return nil
	}
	attr.Files[2], err = s.outputTo(s.Streams.Stderr)
	return err
}

// same reports whether two writers are the same.
func same(a, b io.Writer) bool {
	defer func() { _ = recover() }() // values that cannot be compared are two
	return a != nil && a == b
}

func (s *Session) openTerminal(attr *os.ProcAttr) error {
	open := s.Terminal
	if open == nil {
		open = pty.Open
	}
	master, slave, err := open()
	if err != nil {
		return fmt.Errorf("cannot open a terminal: %w", err)
	}
	s.ours, s.theirs = append(s.ours, master), append(s.theirs, slave)
	attr.Files = []*os.File{slave, slave, slave}
	attr.Sys.Setctty = true
	if in := s.Streams.Stdin; in != nil {
		s.copies = append(s.copies, func() { go io.Copy(master, in) }) // ends with the stream
	}
	if out := s.Streams.Stdout; out != nil {
		s.copies = append(s.copies, func() { s.output.Go(func() { io.Copy(out, master) }) })
	}
	if sizes := s.Streams.Resize; sizes != nil {
		s.copies = append(s.copies, func() {
			go func() { // ends when the client closes the channel
				for size := range sizes {
					resize(master, size)
				}
			}()
		})
	}
	return nil
}

// resize sets a terminal's size, unless it is closed.
func resize(terminal *os.File, size [2]uint16) {
	if conn, err := terminal.SyscallConn(); err == nil {
		conn.Control(func(fd uintptr) {
			unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: size[0], Row: size[1]})
		})
	}
}

// input returns the command's end of a pipe that is fed from in.
func (s *Session) input(in io.Reader) (*os.File, error) {
	if in == nil {
		return s.null()
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.ours, s.theirs = append(s.ours, write), append(s.theirs, read)
	s.copies = append(s.copies, func() {
		go func() { // ends with the stream, which the caller closes
			io.Copy(write, in)
			write.Close()
		}()
	})
	return read, nil
}

// outputTo returns the command's end of a pipe that is copied to out.
func (s *Session) outputTo(out io.Writer) (*os.File, error) {
	if out == nil {
		return s.null()
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.ours, s.theirs = append(s.ours, read), append(s.theirs, write)
	s.copies = append(s.copies, func() { s.output.Go(func() { io.Copy(out, read) }) })
	return write, nil
}

func (s *Session) null() (*os.File, error) {
	file, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err == nil {
		s.theirs = append(s.theirs, file)
	}
	return file, err
}

// Started lets the copying begin, or, where nothing started, gives all up.
func (s *Session) Started(ok bool) {
	for _, file := range s.theirs {
		file.Close()
	}
	s.theirs = nil
	if !ok {
		s.closeOurs()
		return
	}
	for _, begin := range s.copies {
		begin()
	}
}

// Finish reads the rest of the output and closes everything.
func (s *Session) Finish() {
	late := time.AfterFunc(drain, s.closeOurs)
	s.output.Wait()
	if late.Stop() {
		s.closeOurs()
	}
}

func (s *Session) closeOurs() {
	for _, file := range s.ours {
		file.Close()
	}
}
