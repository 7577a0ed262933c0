// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/runstate"
	"diwan.dev/diwan/internal/platform/node/sandbox/early"
)

// A Pod whose containers share a process namespace has an idle process, which is PID 1 there.
// Its directory in that of the Pod has its root directory, and a file that says who it is, as the
// first line of a run file. It ends with the Pod's last run; where nobody is left to end it, by
// itself.
const (
	shareDir = "share"
	idleFile = "idle"
	nobody   = 65534
)

// joinPod has the job join the process namespace of the run's Pod, which it makes if there is none.
func (r *run) joinPod(ctx context.Context, job *early.Job) error {
	r.joined = true
	r.runtime.sharing.Lock()
	defer r.runtime.sharing.Unlock()
	dir := filepath.Join(filepath.Dir(string(r.state)), shareDir)
	pid, began, ok := idle(dir)
	if !ok {
		var err error
		if pid, began, err = r.share(ctx, dir); err != nil {
			return fmt.Errorf("cannot make a process namespace for the Pod: %w", err)
		}
	}
	job.Among, job.AmongBegan = pid, began
	r.spaces = spacesOf(fmt.Sprintf("/proc/%d", pid))
	return nil
}

// idle finds the idle process of a Pod, if it lives.
func idle(dir string) (pid int, began uint64, ok bool) {
	text, err := os.ReadFile(filepath.Join(dir, idleFile))
	if err != nil {
		return 0, 0, false
	}
	if _, err := fmt.Sscan(string(text), &pid, &began); err != nil {
		return 0, 0, false
	}
	now, err := early.Began(pid)
	return pid, began, err == nil && now == began
}

// share starts the idle process of a Pod. It gets no more rights than the run that is the first.
func (r *run) share(ctx context.Context, dir string) (pid int, began uint64, err error) {
	if err := os.RemoveAll(dir); err != nil {
		return 0, 0, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "root"), 0o755); err != nil {
		return 0, 0, err
	}
	spec := &r.record.Spec
	job := &early.Job{
		Idle: true, Args: []string{"idle"}, Dir: "/", UID: nobody, GID: nobody, Userns: r.runtime.ordinary, NoNewPrivileges: true,
		Seccomp: spec.Security.Seccomp, SeccompFlags: uintptr(spec.Security.SeccompFlags), Masked: spec.Security.Masked,
		Fixed: spec.Security.ReadOnly, Scratch: dir, ReadOnly: true, Netns: spec.Netns,
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, 0, err
	}
	defer null.Close()
	files := make([]*os.File, early.Files)
	files[0], files[1], files[early.RunFile] = null, null, null
	if spec.Hold != "" {
		hold, err := os.Open(spec.Hold)
		if err != nil {
			return 0, 0, err
		}
		defer hold.Close()
		files[early.HoldFile] = hold
	}
	monitor, result, err := (&run{runtime: r.runtime}).launch(ctx, job, files)
	if err != nil {
		return 0, 0, err
	}
	if result.Error != "" {
		monitor.Wait()
		return 0, 0, errors.New(result.Error)
	}
	go monitor.Wait() // ends with the idle process
	if began, err = early.Began(result.PID); err == nil {
		err = os.WriteFile(filepath.Join(dir, idleFile), fmt.Appendf(nil, "%d %d\n", result.PID, began), 0o600)
	}
	if err != nil {
		unix.Kill(result.PID, unix.SIGKILL) // its monitor has not been waited for, so neither has it
	}
	return result.PID, began, err
}

// forget removes the directory of a run, and what its Pod has no use for without it.
func (r *Runtime) forget(st runstate.Dir) error {
	if err := discard(st); err != nil {
		return err
	}
	return r.leavePod(filepath.Dir(string(st)))
}

// leavePod removes the directory of a Pod without runs, and ends its idle process.
func (r *Runtime) leavePod(pod string) error {
	r.sharing.Lock()
	defer r.sharing.Unlock()
	if runs, _ := filepath.Glob(filepath.Join(pod, "run.*")); len(runs) > 0 {
		return nil
	}
	share := filepath.Join(pod, shareDir)
	if pid, began, ok := idle(share); ok {
		if pidfd, err := unix.PidfdOpen(pid, 0); err == nil {
			if now, err := early.Began(pid); err == nil && now == began {
				unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
			}
			unix.Close(pidfd)
		}
	}
	if err := os.RemoveAll(share); err != nil {
		return err
	}
	if err := os.Remove(pod); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.ENOTDIR) {
		return err
	}
	return nil
}
