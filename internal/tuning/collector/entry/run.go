// SPDX-License-Identifier: Apache-2.0

package entry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// Exit codes of a program that cannot be started, as shells have them.
const (
	exitNotRunnable = 126
	exitNotFound    = 127
)

// Options say how Run runs a program.
type Options struct {
	// Dir is shared with the collector.
	Dir Dir
	// Patience bounds how long Run waits for the collector when the program has
	// ended.
	Patience time.Duration
	// Out and Err are the container's own output: the program's, and Run's
	// messages.
	Out, Err *os.File
}

// Run runs a program to its end and returns its exit code, 128 and the number
// of the signal for one that a signal ended. Signals that come meanwhile go to
// the program.
func Run(o Options, command []string) int {
	say := func(format string, args ...any) { fmt.Fprintf(o.Err, "diwan: "+format+"\n", args...) }
	reader, writer, err := os.Pipe()
	if err != nil {
		say("cannot run %s: %v", command[0], err)
		return exitNotRunnable
	}
	defer reader.Close()
	signals := make(chan os.Signal, 32)
	signal.Notify(signals)
	defer signal.Stop(signals)
	program := exec.Command(command[0], command[1:]...)
	program.Stdin, program.Stdout, program.Stderr = os.Stdin, writer, writer
	if err := program.Start(); err != nil {
		say("cannot run %s: %v", command[0], err)
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return exitNotFound
		}
		return exitNotRunnable
	}
	writer.Close()
	tee := newTee(o, say)
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		tee.copy(reader)
	}()
	code := wait(program.Process, signals)
	// Of processes that outlive the program, which the container ends as well,
	// only what is there counts.
	_ = reader.SetReadDeadline(time.Now())
	<-copied
	tee.drain(reader)
	tee.close()
	o.handOver(say)
	return code
}

// wait passes signals on until the program ends. As the first process of a
// container it also buries those that others leave behind.
func wait(program *os.Process, signals <-chan os.Signal) int {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == nil && pid == program.Pid && status.Exited():
			return status.ExitStatus()
		case err == nil && pid == program.Pid && status.Signaled():
			return 128 + int(status.Signal())
		case err == nil && pid > 0, errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.ECHILD):
			return exitNotRunnable // nobody knows how it ended
		}
		s := <-signals // SIGCHLD is one
		if number, ok := s.(syscall.Signal); ok && passes(number) {
			_ = program.Signal(number)
		}
	}
}

// passes reports whether a signal is for the program, and not for this process
// alone.
func passes(s syscall.Signal) bool {
	switch s {
	case syscall.SIGCHLD, syscall.SIGURG, syscall.SIGPIPE: // SIGURG is how Go interrupts itself
		return false
	}
	return true
}

// handOver waits until the collector has stored everything.
func (o Options) handOver(say func(string, ...any)) {
	run := strconv.FormatInt(time.Now().UnixNano(), 36)
	if err := writeName(o.Dir.ended(), run); err != nil {
		say("the metrics may be incomplete: %v", err)
		return
	}
	const soon, later = 5 * time.Millisecond, 100 * time.Millisecond
	began := time.Now()
	for pause := soon; ; pause = min(pause*5/4, later) {
		stored, err := o.Dir.isStored(run)
		switch late := time.Since(began) >= o.Patience; {
		case stored:
			return
		case late && err != nil:
			say("the metrics may be incomplete: %v", err)
			return
		case late:
			say("the metrics may be incomplete: they were not stored within %v", o.Patience)
			return
		}
		time.Sleep(pause)
	}
}
