// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Name is the name under which the binary that calls Main is a keeper.
const Name = "diwan-keeper"

// The files of a keeper, beyond its standard output, which is the log.
const (
	lockFile = iota + 3
	listenerFile
	inputFile
	runFile  // reads the end of the run
	doneFile // is closed when the keeper has ended
	files
)

// Arguments of a keeper.
const (
	argTTY  = "tty"
	argOnce = "once"
)

// Main is a keeper's life. It returns the exit code.
func Main(args []string) int {
	if err := unix.SetNonblock(inputFile, true); err != nil { // so that reads and writes can be ended
		fmt.Fprintln(os.Stderr, "cannot keep a container's input: only diwan starts this program")
		return 2
	}
	k := &keeper{
		input: os.NewFile(inputFile, "input"),
		tty:   slices.Contains(args, argTTY),
		once:  slices.Contains(args, argOnce),
	}
	file := os.NewFile(listenerFile, "listener")
	listener, err := net.FileListener(file)
	file.Close()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot keep a container's input:", err)
		return 2
	}
	defer listener.Close()
	go k.serve(listener) // ends with the process
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		if k.tty {
			k.copy()
		}
	}()
	os.NewFile(runFile, "run").Read(make([]byte, 1)) // nothing is written to it: it ends with the run
	if k.tty {
		k.input.SetReadDeadline(time.Unix(1, 0))
		<-copied
		k.drain()
	}
	return 0
}

// keeper holds input: the write end of a pipe, or the master of a terminal.
type keeper struct {
	tty, once bool

	mu    sync.Mutex
	input *os.File // nil once it is closed
}

// serve gives the input to everybody who connects.
func (k *keeper) serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go k.session(conn.(*net.UnixConn))
	}
}

// session is one connection, which lasts as long as its client wants the input.
func (k *keeper) session(conn *net.UnixConn) {
	defer conn.Close()
	if k.send(conn) != nil {
		return
	}
	conn.Read(make([]byte, 1))
	if k.once && !k.tty {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.input != nil {
			k.input.Close()
			k.input = nil
		}
	}
}

// send sends a byte with a duplicate of the input, or without one if it is closed.
func (k *keeper) send(conn *net.UnixConn) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.input == nil {
		_, err := conn.Write([]byte{0})
		return err
	}
	raw, err := k.input.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	return errors.Join(raw.Control(func(fd uintptr) {
		_, _, sent = conn.WriteMsgUnix([]byte{0}, unix.UnixRights(int(fd)), nil)
	}), sent)
}

// copy copies the terminal's output to the log until the deadline, or until the
// terminal is hung up. If the disk is full, output is lost; the program
// continues.
func (k *keeper) copy() {
	buffer := make([]byte, 32<<10)
	for {
		n, err := k.input.Read(buffer)
		os.Stdout.Write(buffer[:n])
		if err != nil {
			return
		}
	}
}

// drain copies what the terminal holds now.
func (k *keeper) drain() {
	raw, err := k.input.SyscallConn()
	if err != nil {
		return
	}
	buffer := make([]byte, 32<<10)
	raw.Control(func(fd uintptr) {
		for {
			n, err := unix.Read(int(fd), buffer)
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if err != nil || n <= 0 {
				return
			}
			os.Stdout.Write(buffer[:n])
		}
	})
}
