// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Options configure a keeper.
type Options struct {
	// Program is the binary that calls Main under the name Name.
	Program string
	// Dir is the directory of the keeper's socket. Only the owner can enter
	// it.
	Dir string
	// TTY asks for a terminal instead of a pipe.
	TTY bool
	// Once ends the program's input when the first session ends. A terminal's
	// input never ends.
	Once bool
	// UID and GID own the program's end; -1 leaves the owner.
	UID, GID int
	// Log receives the terminal's output.
	Log *os.File
}

// Kept are the ends that are for the run. The caller closes them once the run has them.
type Kept struct {
	// Input is the program's standard input; a terminal is also its output.
	Input *os.File
	// The run must hold Run: the keeper exits when nobody holds it any more.
	Run *os.File
	// Done is read to its end once the keeper has copied everything and ended.
	Done *os.File

	process *os.Process
}

// Close closes the files.
func (k *Kept) Close() {
	for _, file := range []*os.File{k.Input, k.Run, k.Done} {
		file.Close()
	}
}

// Reap waits until the keeper has ended.
func (k *Kept) Reap() { k.process.Wait() }

// Start starts a keeper.
func Start(o Options) (_ *Kept, err error) {
	var ours, theirs []*os.File // given to the run, and to the keeper
	defer func() {
		closeAll(theirs)
		if err != nil {
			closeAll(ours)
			err = fmt.Errorf("cannot keep the container's input: %w", err)
		}
	}()
	input, kept, err := open(o.TTY)
	if err != nil {
		return nil, err
	}
	ours, theirs = append(ours, input), append(theirs, kept)
	if err := input.Chown(o.UID, o.GID); err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.EINVAL) {
		return nil, err
	}
	ended, run, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	ours, theirs = append(ours, run), append(theirs, ended)
	done, alive, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	ours, theirs = append(ours, done), append(theirs, alive)
	lock, err := os.OpenFile(lockPath(o.Dir), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	theirs = append(theirs, lock)
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, err
	}
	socket, err := listen(o.Dir)
	if err != nil {
		return nil, err
	}
	theirs = append(theirs, socket)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	theirs = append(theirs, null)

	args := []string{Name}
	output := null
	if o.TTY {
		args, output = append(args, argTTY), o.Log
	}
	if o.Once {
		args = append(args, argOnce)
	}
	list := make([]*os.File, files)
	list[0], list[1], list[2] = null, output, null
	list[lockFile], list[listenerFile], list[inputFile], list[runFile], list[doneFile] = lock, socket, kept, ended, alive
	process, err := os.StartProcess(o.Program, args, &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=1"}, Files: list, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, err
	}
	return &Kept{Input: input, Run: run, Done: done, process: process}, nil
}

// open makes the program's end and the keeper's.
func open(tty bool) (program, kept *os.File, err error) {
	if tty {
		kept, program, err = pty.Open()
		return program, kept, err
	}
	return os.Pipe()
}

func closeAll(files []*os.File) {
	for _, file := range files {
		file.Close()
	}
}

func lockPath(dir string) string { return filepath.Join(dir, "keeper") }

const socketName = "keeper.sock"

// listen makes the socket in dir.
func listen(dir string) (*os.File, error) {
	var file *os.File
	return file, shorten(dir, func(dir string) error {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, socketName), Net: "unix"})
		if err != nil {
			return err
		}
		defer l.Close()
		l.SetUnlinkOnClose(false)
		file, err = l.File()
		return err
	})
}

// shorten calls f with a short path to dir, for a socket's path may have hardly
// more than a hundred bytes.
func shorten(dir string, f func(string) error) error {
	if runtime.GOOS != "linux" {
		return f(dir)
	}
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer file.Close()
	return f(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
}
