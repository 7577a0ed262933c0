// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/keeper"
	"diwan.dev/diwan/internal/platform/node/runstate"
	"diwan.dev/diwan/internal/platform/node/sandbox/early"
	"diwan.dev/diwan/internal/platform/node/thread"
)

// sealed opens this program through a mount of its own that is read-only for everybody.
func sealed() (*os.File, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program: %w", err)
	}
	var fd int
	err = thread.Run(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return err
		}
		if fd, err = unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC); err != nil {
			return err
		}
		return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID})
	})
	if err != nil {
		return nil, fmt.Errorf("cannot protect this program from containers: %w", err)
	}
	return os.NewFile(uintptr(fd), "diwan"), nil
}

// begin writes the run's state, and starts its monitor.
func (r *run) begin(ctx context.Context, output *os.File) error {
	spec := &r.record.Spec
	failed := func(err error) error { return fmt.Errorf("cannot start container %s: %w", spec.ID, err) }
	scratch := string(r.state) // each file costs time
	copied := r.runtime.Overlay() != nil
	if copied {
		if err := flatten(spec.Root.Layers, filepath.Join(scratch, "root")); err != nil {
			return failed(err)
		}
	}
	if err := r.state.Write(r.record); err != nil {
		return failed(err)
	}
	file, err := r.state.Lock()
	if err != nil {
		return failed(err)
	}
	defer file.Close() // the monitor keeps its own
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return failed(err)
	}
	defer null.Close()
	job := r.job()
	job.Scratch = scratch
	err = r.joinAmong(job)
	if spec.SharesProcesses && spec.Among == nil {
		err = r.joinPod(ctx, job)
	}
	if err != nil {
		return failed(err)
	}
	if copied {
		job.Layers = nil
		if err := copyVolumes(job.Mounts, scratch); err != nil {
			return failed(err)
		}
	}
	files := make([]*os.File, early.Files)
	files[0], files[1], files[early.RunFile] = null, output, file
	if spec.Hold != "" {
		hold, err := os.Open(spec.Hold)
		if err != nil {
			return failed(fmt.Errorf("cannot open the Pods' network: %w", err))
		}
		defer hold.Close()
		files[early.HoldFile] = hold
	}
	if err := r.keep(files, output); err != nil {
		return err
	}
	job.Kept = r.kept != nil
	r.started = time.Now()
	monitor, result, err := r.launch(ctx, job, files)
	if r.kept != nil {
		r.kept.Close() // the monitor keeps its own
	}
	if err == nil {
		err = r.judge(result)
		if err != nil {
			monitor.Wait()
		}
	}
	if err != nil {
		if r.kept != nil {
			r.kept.Reap()
		}
		if start := (*container.StartError)(nil); errors.As(err, &start) {
			return start
		}
		return failed(err)
	}
	r.pid = result.PID
	if saw, err := r.state.Look(); err == nil {
		r.began = saw.Began
	}
	r.spaces[1] = result.Mounts
	r.remember()
	go r.wait(monitor) // ends with the run
	return nil
}

// copyVolumes gives the volumes of images, which cannot be mounted as overlays, copies in the scratch.
// The image's copy is one layer, so that what holds for layers holds for it.
func copyVolumes(mounts []early.Mount, scratch string) error {
	for i := range mounts {
		m := &mounts[i]
		if len(m.Layers) == 0 {
			continue
		}
		to := filepath.Join(scratch, fmt.Sprintf("volume.%d", i))
		if err := flatten(m.Layers, to); err != nil {
			return err
		}
		m.Layers = []string{to}
	}
	return nil
}

// joinAmong has the job join the processes of the run that the spec names.
func (r *run) joinAmong(job *early.Job) error {
	spec := &r.record.Spec
	if spec.Among == nil {
		return nil
	}
	r.joined = true
	other := runstate.Of(r.runtime.cfg.Dir, *spec.Among)
	saw, err := other.Look()
	if err == nil && !saw.Running {
		err = errors.New("it does not run")
	}
	var record runstate.Record
	if err == nil {
		record, _, err = other.Read()
	}
	if err != nil {
		return fmt.Errorf("cannot join the processes of container %s: %w", spec.Among, err)
	}
	ids := func(u *container.User) [2]int64 {
		if u == nil {
			return [2]int64{}
		}
		return [2]int64{u.UID, u.GID}
	}
	job.Among, job.AmongBegan = saw.PID, saw.Began
	r.spaces = spacesOf(fmt.Sprintf("/proc/%d", saw.PID))
	job.AmongUser = r.runtime.ordinary && ids(spec.User) == ids(record.Spec.User)
	return nil
}

// judge turns what a monitor says into an error.
func (r *run) judge(result early.Result) error {
	switch {
	case result.Error == "":
		return nil
	case result.Code != 0:
		return &container.StartError{Reason: "ContainerCannotRun", Code: result.Code, Err: errors.New(result.Error)}
	}
	return errors.New(result.Error)
}

// job is what a monitor is to do for the run's program, or beside it.
func (r *run) job() *early.Job {
	spec := &r.record.Spec
	job := &early.Job{
		Args: spec.Args, Env: spec.Env, Dir: spec.Dir, Userns: r.runtime.ordinary, TTY: spec.TTY,
		Capabilities: uint64(spec.Security.Capabilities), NoNewPrivileges: spec.Security.NoNewPrivileges,
		Privileged: spec.Security.Privileged, Masked: spec.Security.Masked, Fixed: spec.Security.ReadOnly,
		Seccomp: spec.Security.Seccomp, SeccompFlags: uintptr(spec.Security.SeccompFlags),
		Layers: spec.Root.Layers, ReadOnly: spec.Root.ReadOnly,
		Hostname: spec.Hostname, Netns: spec.Netns,
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Sysctls)) {
		job.Sysctls = append(job.Sysctls, name, spec.Sysctls[name])
	}
	if u := spec.User; u != nil {
		job.UID, job.GID = uint32(u.UID), uint32(u.GID)
		for _, g := range u.Groups {
			job.Groups = append(job.Groups, uint32(g))
		}
	}
	for _, m := range spec.Mounts {
		job.Mounts = append(job.Mounts, early.Mount{Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly, Optional: m.Optional, Base: m.Base, Layers: m.Layers})
	}
	for _, dir := range r.record.Groups {
		if !r.runtime.groups.Unified([]string{dir}) {
			job.Tasks = append(job.Tasks, filepath.Join(dir, "tasks"))
		}
	}
	return job
}

// launch starts a monitor and returns what it says.
func (r *run) launch(ctx context.Context, job *early.Job, files []*os.File) (*os.Process, early.Result, error) {
	var result early.Result
	group := ""
	if r.runtime.groups.Unified(r.record.Groups) {
		group = r.record.Groups[0]
	}
	if group != "" {
		dir, err := os.Open(group)
		if err != nil {
			return nil, result, fmt.Errorf("cannot open the cgroup: %w", err)
		}
		defer dir.Close()
		files[early.GroupFile], job.InGroup = dir, true
	}
	fd, err := unix.MemfdCreate("job", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, result, err
	}
	memory := os.NewFile(uintptr(fd), "job")
	defer memory.Close()
	if _, err := memory.Write(job.Encode()); err != nil {
		return nil, result, err
	}
	read, status, err := os.Pipe()
	if err != nil {
		return nil, result, err
	}
	defer read.Close()
	// A monitor that panics says so there, too.
	files[2], files[early.JobFile], files[early.StatusFile] = status, memory, status
	// By its number in the child: that of this process may be another file's there.
	files[early.SelfFile] = r.runtime.program
	monitor, err := os.StartProcess(fmt.Sprintf("/proc/self/fd/%d", early.SelfFile), []string{early.Name}, &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=1"}, Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	status.Close()
	if err != nil {
		return nil, result, err
	}
	stop := context.AfterFunc(ctx, func() { monitor.Kill() })
	said, _ := io.ReadAll(read)
	if !stop() {
		monitor.Wait()
		return nil, result, ctx.Err()
	}
	if err := result.Decode(said); err != nil {
		monitor.Kill()
		monitor.Wait()
		return nil, result, fmt.Errorf("cannot start the container's monitor: it says %q", said)
	}
	return monitor, result, nil
}

// keep gives a run that requests it an input, or a terminal, that stays open.
func (r *run) keep(files []*os.File, output *os.File) (err error) {
	spec := &r.record.Spec
	if !spec.Stdin && !spec.TTY {
		return nil
	}
	if r.runtime.cfg.Keeper == "" {
		return &container.StartError{Reason: "ContainerCannotRun", Code: 128, Err: errors.New("this node does not support stdin or tty: omit them")}
	}
	options := keeper.Options{
		Program: r.runtime.cfg.Keeper, Dir: string(r.state), TTY: spec.TTY, Once: spec.StdinOnce, UID: -1, GID: -1, Log: output,
	}
	if spec.User != nil {
		options.UID, options.GID = int(spec.User.UID), int(spec.User.GID)
	}
	if r.kept, err = keeper.Start(options); err != nil {
		return err
	}
	files[0], files[early.KeptFile], files[early.DoneFile] = r.kept.Input, r.kept.Run, r.kept.Done
	return nil
}
