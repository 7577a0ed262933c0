// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/keeper"
)

// spawn starts the shim. file becomes its file 3.
func (r *run) spawn(file, output *os.File) error {
	spec := &r.record.Spec
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("cannot start container %s: %w", spec.ID, err)
	}
	defer null.Close()
	files := make([]*os.File, shimFiles)
	files[0], files[1], files[2], files[runFile] = null, output, output, file
	env, odd := split(spec.Env)
	args := spec.Args
	if len(odd) > 0 {
		args = append(append([]string{"env"}, odd...), args...)
	}
	attr := &os.ProcAttr{
		Env:   append(env, marker(spec.ID)),
		Files: files,
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	if err := r.keep(attr, output); err != nil {
		return r.explain(err)
	}
	shim, err := r.launch(attr, args)
	if r.kept != nil {
		r.kept.Close() // the shim keeps its own
	}
	if err != nil {
		if r.kept != nil {
			r.kept.Reap()
		}
		return r.explain(err)
	}
	r.pid = shim.Pid
	go r.wait(shim) // ends with the run
	return nil
}

// The files of a shim.
const (
	runFile = iota + 3
	_       // the program's standard error, which the shim puts there itself
	holdFile
	keptFile
	doneFile
	shimFiles
)

// keep gives a run that requests it an input, or a terminal, that stays open.
func (r *run) keep(attr *os.ProcAttr, output *os.File) (err error) {
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
	attr.Files[0] = r.kept.Input
	if spec.TTY {
		attr.Files[1], attr.Files[2] = r.kept.Input, r.kept.Input
		attr.Sys.Setctty, attr.Sys.Ctty = true, 0
	}
	attr.Files[keptFile], attr.Files[doneFile] = r.kept.Run, r.kept.Done
	return nil
}

// Attach connects to the run's standard input.
func (r *run) Attach(ctx context.Context) (container.Input, error) {
	input, err := keeper.Connect(ctx, string(r.state))
	if errors.Is(err, keeper.ErrClosed) {
		return nil, fmt.Errorf("cannot attach to the input of container %s: %w", r.record.Spec.ID, container.ErrNoInput)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot attach to the input of container %s: %w", r.record.Spec.ID, err)
	}
	return input, nil
}

// explain turns a failure of the system into an error about the container.
func (r *run) explain(err error) error {
	if start := (*container.StartError)(nil); errors.As(err, &start) {
		return start
	}
	err = fmt.Errorf("cannot start container %s: %w", r.record.Spec.ID, err)
	for _, lasting := range []error{syscall.E2BIG, syscall.EROFS, fs.ErrPermission, fs.ErrNotExist, syscall.ENOTDIR, syscall.EINVAL, syscall.ENAMETOOLONG} {
		if errors.Is(err, lasting) {
			return &container.StartError{Reason: "ContainerCannotRun", Code: 128, Err: err}
		}
	}
	return err
}

// enter looks for the working directory, and for the program from there. A
// container runtime would make a directory that is missing, inside its image;
// here that would litter the machine.
func enter(spec *container.Spec) error {
	if info, err := os.Stat(spec.Dir); err != nil || !info.IsDir() {
		return &container.StartError{Reason: "ContainerCannotRun", Code: 128, Err: fmt.Errorf(
			"cannot find the working directory %s on this machine; create it, mount a volume there, or map the container's image to files that contain it: diwan images map", spec.Dir)}
	}
	_, err := Find(spec.Args[0], spec.Dir, spec.Env)
	return err
}

// marker is the environment variable that identifies a run's processes.
func marker(id container.ID) string { return markerName + "=" + id.String() }

const markerName = "DIWAN_CONTAINER_ID"
