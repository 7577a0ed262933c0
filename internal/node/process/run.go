// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/node/container"
)

// run is one run of a container, started or adopted.
type run struct {
	runtime  *Runtime
	state    state
	record   record
	started  time.Time
	pid      int // the shim: session, process group
	warnings []string

	done chan struct{}
	exit container.Exit // valid once done is closed

	mu     sync.Mutex
	killed bool
}

// Spec returns what was asked for.
func (r *run) Spec() container.Spec { return r.record.Spec }

// Started is when the run started.
func (r *run) Started() time.Time { return r.started }

// Done is closed when no process of the run is left.
func (r *run) Done() <-chan struct{} { return r.done }

// Exit returns how the run ended.
func (r *run) Exit() container.Exit {
	exit := r.exit
	if at, ok := r.state.marked("interrupted"); ok && interrupts(at, exit) {
		exit.Outcome = container.Interrupted
	}
	return exit
}

// interrupts tells whether a mark made at the time at came before the end. The
// clock of files is coarse, so between equal times the code decides: a program
// that was not killed by a signal ended by itself.
func interrupts(at time.Time, exit container.Exit) bool {
	return at.Before(exit.At) || at.Equal(exit.At) && exit.Code > 128
}

// Warnings are what the run could not be given.
func (r *run) Warnings() []string { return r.warnings }

// wait waits for the shim that this process started.
func (r *run) wait(shim *os.Process) {
	status, _ := shim.Wait()
	saw, err := r.state.look()
	if err != nil || !saw.ended {
		saw = report{ended: true, code: exitCode(status), at: time.Now()} // killed, or the disk is full
	}
	r.finish(saw)
}

// watch waits for the end of a shim that an earlier process started.
func (r *run) watch() {
	tick := time.NewTicker(r.runtime.cfg.AdoptPoll)
	defer tick.Stop()
	for {
		select {
		case <-r.runtime.closing:
			return
		case <-tick.C:
		}
		if saw, err := r.state.look(); err == nil && !saw.running {
			r.finish(saw)
			return
		}
	}
}

// settle looks until it is certain what the run is. A lock without a process
// group in the file is a matter of instants: a shim that has just started, or
// the fork of another program by a node that was killed.
func (r *run) settle(ctx context.Context) (report, error) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		saw, err := r.state.look()
		if err != nil || !saw.running || saw.pid > 0 {
			return saw, err
		}
		select {
		case <-ctx.Done():
			return saw, ctx.Err()
		case <-tick.C:
		}
	}
}

// finish ends what the program left behind and tells the run's end.
func (r *run) finish(saw report) {
	oom := r.runtime.groups.oomKilled(r.record.Groups)
	r.sweep()
	r.exit = container.Exit{Outcome: container.Exited, Code: saw.code, OOMKilled: oom, At: saw.at}
	switch {
	case saw.ended:
	default:
		r.exit.Code = 128 + int32(syscall.SIGKILL)
		if at, killed := r.state.marked("killed"); killed {
			r.exit.At = at
		} else {
			r.exit.Outcome = container.Lost
		}
	}
	close(r.done)
}

// sweep kills what is left of the run until nothing is.
func (r *run) sweep() {
	grouped := r.runtime.groups.unified(r.record.Groups)
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		if r.runtime.groups.remove(r.record.Groups) && (grouped || !killMarked(r.record.Spec.ID, r.pid)) {
			return
		}
		time.Sleep(pause) // the kernel needs a moment to end them
	}
}

// young is how long a run may not yet react to signals: a shell forgets one
// that comes between the fork and the exec of the program.
const young = 250 * time.Millisecond

// Signal sends a signal to the run's process group. To a run that has hardly
// begun it is sent once more.
func (r *run) Signal(s os.Signal) error {
	number, ok := s.(syscall.Signal)
	if !ok {
		return fmt.Errorf("cannot send signal %v: this system does not know it", s)
	}
	select {
	case <-r.done:
		return os.ErrProcessDone
	default:
	}
	if r.pid <= 0 {
		return os.ErrProcessDone
	}
	if time.Since(r.started) < young {
		time.AfterFunc(young, func() {
			select {
			case <-r.done:
			default:
				unix.Kill(-r.pid, number)
			}
		})
	}
	if err := unix.Kill(-r.pid, number); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("cannot send %v to container %s: %w", s, r.record.Spec.ID, err)
	}
	return nil
}

// Kill ends the run at once.
func (r *run) Kill() error {
	select {
	case <-r.done:
		return nil
	default:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.killed {
		if err := r.state.mark("killed"); err != nil && !errors.Is(err, unix.ENOSPC) {
			return fmt.Errorf("cannot kill container %s: %w", r.record.Spec.ID, err)
		}
		r.killed = true
	}
	r.runtime.groups.kill(r.record.Groups)
	if err := r.Signal(syscall.SIGKILL); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Interrupt marks the run as interrupted.
func (r *run) Interrupt() error {
	if err := r.state.mark("interrupted"); err != nil {
		return fmt.Errorf("cannot mark container %s as interrupted: %w", r.record.Spec.ID, err)
	}
	return nil
}

// Remove forgets the run.
func (r *run) Remove() error {
	select {
	case <-r.done:
	default:
		return fmt.Errorf("cannot remove container %s: it is running", r.record.Spec.ID)
	}
	if err := os.RemoveAll(r.state.dir); err != nil {
		return fmt.Errorf("cannot remove the state of container %s: %w", r.record.Spec.ID, err)
	}
	return nil
}

// abandon removes what Start made before it failed.
func (r *run) abandon() {
	r.runtime.groups.remove(r.record.Groups)
	os.RemoveAll(r.state.dir)
}

// exitCode is the shell's number for a process state.
func exitCode(s *os.ProcessState) int32 {
	status, ok := s.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		return 1
	case status.Signaled():
		return 128 + int32(status.Signal())
	}
	return int32(status.ExitStatus())
}
