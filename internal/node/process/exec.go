// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/node/container"
)

// drain bounds how long output is read after a command has ended while a
// process that it left behind holds the pipe open.
const drain = 500 * time.Millisecond

// Exec runs a command beside the run.
func (r *run) Exec(ctx context.Context, args []string, s container.Streams) error {
	select {
	case <-r.done:
		return fmt.Errorf("cannot run a command in container %s: it has ended", r.record.Spec.ID)
	default:
	}
	if len(args) == 0 {
		return fmt.Errorf("cannot run a command in container %s: there is no command", r.record.Spec.ID)
	}
	session := &session{streams: s}
	attr := &os.ProcAttr{Sys: &syscall.SysProcAttr{Setsid: true}}
	if err := session.open(attr); err != nil {
		return fmt.Errorf("cannot run a command in container %s: %w", r.record.Spec.ID, err)
	}
	proc, err := r.runtime.startBeside(r.record, r.pid, attr, args)
	session.started(err == nil)
	if err != nil {
		return fmt.Errorf("cannot run %q in container %s: %w", args[0], r.record.Spec.ID, err)
	}
	status := r.await(ctx, proc)
	session.finish()
	if err := ctx.Err(); err != nil {
		return err
	}
	if code := exitCode(status); code != 0 {
		return &container.ExitError{Code: int(code)}
	}
	return nil
}

// await waits for the command, and ends it with the context.
func (r *run) await(ctx context.Context, proc *os.Process) *os.ProcessState {
	stop := context.AfterFunc(ctx, func() { unix.Kill(-proc.Pid, unix.SIGKILL) })
	defer stop()
	status, _ := proc.Wait()
	return status
}

// session joins a command's files with streams.
type session struct {
	streams container.Streams
	theirs  []*os.File // closed once the command has them
	ours    []*os.File // closed at the end
	copies  []func()
	output  sync.WaitGroup
}

// open makes the files and puts them into attr.
func (s *session) open(attr *os.ProcAttr) (err error) {
	defer func() {
		if err != nil {
			s.started(false)
		}
	}()
	if s.streams.TTY {
		return s.openTerminal(attr)
	}
	attr.Files = make([]*os.File, 3)
	if attr.Files[0], err = s.input(s.streams.Stdin); err != nil {
		return err
	}
	if attr.Files[1], err = s.outputTo(s.streams.Stdout); err != nil {
		return err
	}
	if same(s.streams.Stdout, s.streams.Stderr) {
		attr.Files[2] = attr.Files[1] // one writer is for one goroutine
		return nil
	}
	attr.Files[2], err = s.outputTo(s.streams.Stderr)
	return err
}

// same tells whether two writers are one.
func same(a, b io.Writer) bool {
	defer func() { _ = recover() }() // values that cannot be compared are two
	return a != nil && a == b
}

func (s *session) openTerminal(attr *os.ProcAttr) error {
	master, slave, err := pty.Open()
	if err != nil {
		return fmt.Errorf("cannot open a terminal: %w", err)
	}
	s.ours, s.theirs = append(s.ours, master), append(s.theirs, slave)
	attr.Files = []*os.File{slave, slave, slave}
	attr.Sys.Setctty = true
	if in := s.streams.Stdin; in != nil {
		s.copies = append(s.copies, func() { go io.Copy(master, in) }) // ends with the stream
	}
	if out := s.streams.Stdout; out != nil {
		s.copies = append(s.copies, func() { s.output.Go(func() { io.Copy(out, master) }) })
	}
	if sizes := s.streams.Resize; sizes != nil {
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
func (s *session) input(in io.Reader) (*os.File, error) {
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
func (s *session) outputTo(out io.Writer) (*os.File, error) {
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

func (s *session) null() (*os.File, error) {
	file, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err == nil {
		s.theirs = append(s.theirs, file)
	}
	return file, err
}

// started lets the copying begin, or, where nothing started, gives all up.
func (s *session) started(ok bool) {
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

// finish reads the rest of the output and closes everything.
func (s *session) finish() {
	late := time.AfterFunc(drain, s.closeOurs)
	s.output.Wait()
	if late.Stop() {
		s.closeOurs()
	}
}

func (s *session) closeOurs() {
	for _, file := range s.ours {
		file.Close()
	}
}
