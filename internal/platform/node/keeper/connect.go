// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// ErrClosed says that the program's input was closed for good, or never was open.
var ErrClosed = errors.New("its standard input is closed")

// Input is a session with a keeper: data written to it goes to the program.
type Input struct {
	conn *net.UnixConn
	file *os.File
	once sync.Once
}

// Connect begins a session with the keeper of dir. Without a keeper, or after
// the end of the input, the error is ErrClosed.
func Connect(ctx context.Context, dir string) (*Input, error) {
	var conn net.Conn
	err := shorten(dir, func(dir string) error {
		var err error
		conn, err = (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, socketName))
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED):
		return nil, ErrClosed
	case err != nil:
		return nil, fmt.Errorf("cannot reach the container's input: %w", err)
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	file, err := receive(conn.(*net.UnixConn))
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &Input{conn: conn.(*net.UnixConn), file: file}, nil
}

// receive takes the file that the keeper sends.
func receive(conn *net.UnixConn) (*os.File, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return nil, ErrClosed // it ended meanwhile
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) == 0 {
		return nil, ErrClosed
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("cannot take the container's input: %w", errors.Join(err, errors.New("the keeper sent no file")))
	}
	unix.CloseOnExec(fds[0])
	return os.NewFile(uintptr(fds[0]), "input"), nil
}

// Write writes to the program's standard input. It blocks while the program
// does not read; Close ends that.
func (i *Input) Write(p []byte) (int, error) { return i.file.Write(p) }

// Resize sets the size of the program's terminal, in characters.
func (i *Input) Resize(columns, rows uint16) error {
	raw, err := i.file.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	return errors.Join(raw.Control(func(fd uintptr) {
		set = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows})
	}), set)
}

// Close ends the session.
func (i *Input) Close() error {
	var err error
	i.once.Do(func() { err = errors.Join(i.file.Close(), i.conn.Close()) })
	return err
}

// Wait returns once the keeper of dir has ended, if there ever was one.
func Wait(dir string) {
	file, err := os.Open(lockPath(dir))
	if err != nil {
		return
	}
	defer file.Close()
	for errors.Is(unix.Flock(int(file.Fd()), unix.LOCK_SH), unix.EINTR) {
	}
}
