// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"diwan.dev/diwan/internal/node/container"
)

// spawn starts the shim. file becomes its file 3.
func (r *run) spawn(file, output *os.File) error {
	spec := &r.record.Spec
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("cannot start container %s: %w", spec.ID, err)
	}
	defer null.Close()
	env, odd := split(spec.Env)
	args := spec.Args
	if len(odd) > 0 {
		args = append(append([]string{"env"}, odd...), args...)
	}
	attr := &os.ProcAttr{
		Env:   append(env, marker(spec.ID)),
		Files: []*os.File{null, output, output, file},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	shim, err := r.launch(attr, args)
	if err != nil {
		return r.explain(err)
	}
	r.pid = shim.Pid
	go r.wait(shim) // ends with the run
	return nil
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
			"cannot find the working directory %s on this machine; create it, mount a volume there, or map the container's image to files that hold it: diwan images map", spec.Dir)}
	}
	_, err := resolve(spec.Args[0], spec.Dir, spec.Env)
	return err
}

// marker is the variable by which a run's processes are recognised.
func marker(id container.ID) string { return markerName + "=" + id.String() }

const markerName = "DIWAN_CONTAINER_ID"
