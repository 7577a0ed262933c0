// SPDX-License-Identifier: Apache-2.0

package entry

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// tee writes a program's output to the output file and to the container's own
// output. If one fails, the other and the program continue.
type tee struct {
	file, out *os.File
	say       func(string, ...any)
	said      bool
}

// newTee opens the output file. What an earlier run left as a line without an
// end gets one.
func newTee(o Options, say func(string, ...any)) *tee {
	t := &tee{out: o.Out, say: say}
	file, err := os.OpenFile(o.Dir.Output(), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o666)
	if err != nil {
		t.complain(err)
		return t
	}
	t.file = file
	if info, err := file.Stat(); err == nil && info.Size() > 0 {
		last := make([]byte, 1)
		if _, err := file.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
			t.keep([]byte("\n"))
		}
	}
	return t
}

// complain reports once what keeps metrics from being collected.
func (t *tee) complain(err error) {
	if !t.said {
		t.said = true
		t.say("the metrics may be incomplete: cannot save the program's output: %v", err)
	}
}

func (t *tee) keep(p []byte) {
	if t.file == nil {
		return
	}
	if _, err := t.file.Write(p); err != nil {
		t.complain(err)
	}
}

func (t *tee) write(p []byte) {
	t.keep(p)
	_, _ = t.out.Write(p)
}

// copy copies until EOF or the reader's deadline.
func (t *tee) copy(r io.Reader) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := r.Read(buffer)
		if n > 0 {
			t.write(buffer[:n])
		}
		if err != nil {
			return
		}
	}
}

// drain copies what is in a pipe without waiting for more.
func (t *tee) drain(pipe *os.File) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = pipe.SetReadDeadline(time.Time{})
	buffer := make([]byte, 64<<10)
	for more := true; more; {
		more = false
		_ = raw.Read(func(fd uintptr) bool {
			n, err := syscall.Read(int(fd), buffer)
			if n > 0 {
				t.write(buffer[:n])
			}
			more = n > 0 || errors.Is(err, syscall.EINTR)
			return true
		})
	}
}

func (t *tee) close() {
	if t.file != nil {
		_ = t.file.Close()
	}
}
