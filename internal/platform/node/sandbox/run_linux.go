// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/cgroup"
	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/keeper"
	"diwan.dev/diwan/internal/platform/node/runstate"
	"diwan.dev/diwan/internal/platform/node/sandbox/early"
)

// run is one run of a container, started or adopted.
type run struct {
	runtime  *Runtime
	state    runstate.Dir
	record   runstate.Record
	started  time.Time
	pid      int    // the program
	began    uint64 // when, as the run file says
	spaces   [2]string
	joined   bool // whether its processes are among those of others
	warnings []string
	cpu      time.Duration // of a monitor that this process waited for
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

// wait waits for the monitor that this process started.
func (r *run) wait(monitor *os.Process) {
	status, _ := monitor.Wait()
	r.cpu = status.UserTime() + status.SystemTime()
	saw, err := r.state.Look()
	if err == nil && !saw.Ended && status.Exited() {
		saw = runstate.Report{PID: saw.PID, Ended: true, Code: int32(status.ExitCode()), At: time.Now()} // the disk is full
	}
	r.finish(saw)
}

// watch waits for the end of a monitor that an earlier process started.
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

// finish ends what is left, and reports the run's end.
func (r *run) finish(saw runstate.Report) {
	oom := r.runtime.groups.OOMKilled(r.record.Groups)
	cpu, peak := r.runtime.groups.Used(r.record.Groups)
	r.sweep()
	keeper.Wait(string(r.state))
	if r.kept != nil {
		r.kept.Reap()
	}
	r.exit = container.Exit{Outcome: container.Exited, Code: saw.Code, OOMKilled: oom, CPU: max(cpu, r.cpu), PeakMemory: peak, At: saw.At}
	if !saw.Ended {
		r.exit.Code = 128 + int32(syscall.SIGKILL)
		if r.exit.At.IsZero() {
			r.exit.At = time.Now()
		}
		if at, killed := r.state.Marked("killed"); killed {
			r.exit.At = at
		} else {
			r.exit.Outcome = container.Lost
		}
	}
	close(r.done)
}

// sweep kills what is left of the run until nothing is. A program that is PID 1 of its
// namespace ends with all others there. Among those of another container, they are found by
// their mounts.
func (r *run) sweep() {
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		program := r.signal(unix.SIGKILL)
		var others []int
		if r.joined {
			others = r.members()
		}
		for _, pid := range others {
			unix.Kill(pid, unix.SIGKILL)
		}
		if r.runtime.groups.Remove(r.record.Groups) && len(others) == 0 && errors.Is(program, os.ErrProcessDone) {
			return
		}
		time.Sleep(pause) // the kernel needs a moment to end them
	}
}

// signal sends a signal to the program, and never to a stranger with its number. The error
// is os.ErrProcessDone when it has ended.
func (r *run) signal(s syscall.Signal) error {
	if r.pid <= 0 {
		return os.ErrProcessDone
	}
	pidfd, err := unix.PidfdOpen(r.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return os.ErrProcessDone
	}
	if err != nil {
		return err
	}
	defer unix.Close(pidfd)
	if began, err := early.Began(r.pid); err != nil || began != r.began {
		return os.ErrProcessDone
	}
	err = unix.PidfdSendSignal(pidfd, s, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// Signal sends a signal to the run's program. As PID 1 it does not get those that it has no
// handler for, but for SIGKILL, as in any Kubernetes.
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
	if err := r.signal(number); err != nil && !errors.Is(err, os.ErrProcessDone) {
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

// Remove forgets the run, with what it wrote.
func (r *run) Remove() error {
	select {
	case <-r.done:
	default:
		return fmt.Errorf("cannot remove container %s: it is running", r.record.Spec.ID)
	}
	if err := r.runtime.forget(r.state); err != nil {
		return fmt.Errorf("cannot remove the state of container %s: %w", r.record.Spec.ID, err)
	}
	return nil
}

// abandon removes what Start made before it failed.
func (r *run) abandon() {
	for pause := time.Millisecond; !r.runtime.groups.Remove(r.record.Groups) && pause < time.Second; pause *= 2 {
		time.Sleep(pause)
	}
	r.runtime.forget(r.state)
}

// Usage measures the run's processes.
func (r *run) Usage() (container.Usage, error) {
	if len(r.record.Groups) > 0 {
		return cgroup.Usage(cgroup.Members(r.record.Groups[0])), nil
	}
	return cgroup.Usage(r.members()), nil
}

// remember notes the namespaces by which the run's processes are known.
func (r *run) remember() {
	for i, name := range spacesOf(fmt.Sprintf("/proc/%d", r.pid)) {
		if name != "" { // it may have ended
			r.spaces[i] = name
		}
	}
}

// spacesOf are the namespaces of a process's processes and mounts. The latter are the run's
// own; its monitor has those, too.
func spacesOf(proc string) (spaces [2]string) {
	for i, name := range []string{"pid", "mnt"} {
		spaces[i], _ = os.Readlink(filepath.Join(proc, "ns", name))
	}
	return spaces
}

// members are the run's processes.
func (r *run) members() []int {
	if r.spaces[0] == "" || r.spaces[1] == "" {
		return nil
	}
	var pids []int
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range all {
		if spacesOf(proc) == r.spaces {
			if pid, err := strconv.Atoi(filepath.Base(proc)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// Attach connects to the run's standard input.
func (r *run) Attach(ctx context.Context) (container.Input, error) {
	input, err := keeper.Connect(ctx, string(r.state))
	if errors.Is(err, keeper.ErrClosed) {
		err = container.ErrNoInput
	}
	if err != nil {
		return nil, fmt.Errorf("cannot attach to the input of container %s: %w", r.record.Spec.ID, err)
	}
	return input, nil
}
