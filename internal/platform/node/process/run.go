// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/keeper"
	"diwan.dev/diwan/internal/platform/node/runstate"
)

// run is one run of a container, started or adopted.
type run struct {
	runtime  *Runtime
	state    runstate.Dir
	record   runstate.Record
	started  time.Time
	pid      int // the shim: session, process group
	warnings []string
	cpu      time.Duration // of a shim that this process waited for
	kept     *keeper.Kept  // nil without a keeper, or where an earlier process started it

	done chan struct{}
	exit container.Exit // valid once done is closed

	mu     sync.Mutex
	killed bool
}

// Spec returns the run's specification.
func (r *run) Spec() container.Spec { return r.record.Spec }

// Started is when the run started.
func (r *run) Started() time.Time { return r.started }

// Done is closed when no process of the run is left.
func (r *run) Done() <-chan struct{} { return r.done }

// Exit returns how the run ended.
func (r *run) Exit() container.Exit {
	exit := r.exit
	if at, ok := r.state.Marked("interrupted"); ok && interrupts(at, exit) {
		exit.Outcome = container.Interrupted
	}
	return exit
}

// interrupts reports whether a mark made at the time at precedes the end. File
// times are coarse, so for equal times the exit code decides: a program that was
// not killed by a signal exited by itself.
func interrupts(at time.Time, exit container.Exit) bool {
	return at.Before(exit.At) || at.Equal(exit.At) && exit.Code > 128
}

// Warnings are the requests that the run could not be granted.
func (r *run) Warnings() []string { return r.warnings }

// wait waits for the shim that this process started.
func (r *run) wait(shim *os.Process) {
	status, _ := shim.Wait()
	r.cpu = status.UserTime() + status.SystemTime()
	saw, err := r.state.Look()
	if err != nil || !saw.Ended {
		saw = runstate.Report{Ended: true, Code: exitCode(status), At: time.Now()} // killed, or the disk is full
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
		if saw, err := r.state.Look(); err == nil && !saw.Running {
			r.finish(saw)
			return
		}
	}
}

// finish terminates the program's remaining processes and reports the run's
// end.
func (r *run) finish(saw runstate.Report) {
	oom := r.runtime.groups.OOMKilled(r.record.Groups)
	cpu, peak := r.runtime.groups.Used(r.record.Groups)
	r.sweep()
	keeper.Wait(string(r.state))
	if r.kept != nil {
		r.kept.Reap()
	}
	release(r.record.Spec.Mounts)
	r.exit = container.Exit{Outcome: container.Exited, Code: saw.Code, OOMKilled: oom, CPU: max(cpu, r.cpu), PeakMemory: peak, At: saw.At}
	switch {
	case saw.Ended:
	default:
		r.exit.Code = 128 + int32(syscall.SIGKILL)
		if at, killed := r.state.Marked("killed"); killed {
			r.exit.At = at
		} else {
			r.exit.Outcome = container.Lost
		}
	}
	close(r.done)
}

// sweep kills what is left of the run until nothing is.
func (r *run) sweep() {
	grouped := r.runtime.groups.Unified(r.record.Groups)
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		if r.runtime.groups.Remove(r.record.Groups) && (grouped || !killMarked(r.record.Spec.ID, r.pid)) {
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
		return fmt.Errorf("cannot send signal %v: this system does not support it", s)
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
		if err := r.state.Mark("killed"); err != nil && !errors.Is(err, unix.ENOSPC) {
			return fmt.Errorf("cannot kill container %s: %w", r.record.Spec.ID, err)
		}
		r.killed = true
	}
	r.runtime.groups.Kill(r.record.Groups)
	if err := r.Signal(syscall.SIGKILL); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Interrupt marks the run as interrupted.
func (r *run) Interrupt() error {
	if err := r.state.Mark("interrupted"); err != nil {
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
	if err := os.RemoveAll(string(r.state)); err != nil {
		return fmt.Errorf("cannot remove the state of container %s: %w", r.record.Spec.ID, err)
	}
	return nil
}

// abandon removes what Start made before it failed.
func (r *run) abandon() {
	r.runtime.groups.Remove(r.record.Groups)
	release(r.record.Spec.Mounts)
	os.RemoveAll(string(r.state))
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
