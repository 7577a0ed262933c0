// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/rootless"
	"diwan.dev/diwan/internal/platform/node/runstate"
	"diwan.dev/diwan/internal/platform/node/thread"
)

// canUnshare finds out whether this process may make namespaces, by making them.
func canUnshare() bool {
	return thread.Run(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWUTS); err != nil {
			return err
		}
		return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "")
	}) == nil
}

// launch starts the shim for args in the surroundings that the spec asks for.
func (r *run) launch(attr *os.ProcAttr, args []string) (*os.Process, error) {
	spec, groups := &r.record.Spec, r.runtime.groups
	leave, err := groups.Enter(r.record.Groups, attr.Sys)
	if err != nil {
		return nil, err
	}
	defer leave()
	if !r.runtime.spaces {
		if err := enter(spec); err != nil {
			return nil, err
		}
		attr.Dir = spec.Dir
		return os.StartProcess("/bin/sh", shim(args), attr)
	}
	if spec.Hold != "" {
		hold, err := os.Open(spec.Hold)
		if err != nil {
			return nil, fmt.Errorf("cannot open the Pods' network: %w", err)
		}
		defer hold.Close()
		attr.Files[holdFile] = hold
	}
	var points mountpoints
	defer points.close()
	var proc *os.Process
	err = thread.Run(func() error {
		if err := r.runtime.surround(spec, &points); err != nil {
			return err
		}
		if err := enter(spec); err != nil {
			return err
		}
		if err := groups.Join(r.record.Groups); err != nil {
			return err
		}
		become(attr.Sys, spec.User)
		attr.Dir = spec.Dir
		var err error
		proc, err = os.StartProcess("/bin/sh", shim(args), attr)
		return err
	})
	return proc, err
}

// surround moves the calling thread into the run's namespaces.
func (r *Runtime) surround(spec *container.Spec, points *mountpoints) error {
	flags := 0
	if len(spec.Mounts) > 0 {
		flags |= unix.CLONE_NEWNS
	}
	if spec.Hostname != "" {
		flags |= unix.CLONE_NEWUTS
	}
	if flags != 0 {
		if err := unix.Unshare(flags); err != nil {
			return fmt.Errorf("cannot create namespaces: %w", err)
		}
	}
	if spec.Hostname != "" {
		if err := unix.Sethostname([]byte(spec.Hostname)); err != nil {
			return fmt.Errorf("cannot set the host name %q: %w", spec.Hostname, err)
		}
	}
	if len(spec.Mounts) > 0 {
		if err := r.mountAll(spec.Mounts, string(runstate.Of(r.cfg.Dir, spec.ID)), points); err != nil {
			return err
		}
	}
	if spec.Netns == "" {
		return nil
	}
	return joinSpace(spec.Netns, unix.CLONE_NEWNET)
}

// joinSpace moves the calling thread into the namespace at path.
func joinSpace(path string, kind int) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot open the namespace %s: %w", path, err)
	}
	defer unix.Close(fd)
	if err := unix.Setns(fd, kind); err != nil {
		return fmt.Errorf("cannot join the namespace %s: %w", path, err)
	}
	return nil
}

// become makes a process start as the user u, or, where root of a user namespace
// starts it, as the user behind that, who has the ids of u there.
func become(sys *syscall.SysProcAttr, u *container.User) {
	owner, ok := rootless.Owner()
	switch {
	case ok && u != nil:
		rootless.AsUser(sys, rootless.User{UID: int(u.UID), GID: int(u.GID)})
	case ok:
		rootless.AsUser(sys, owner)
	case u != nil:
		sys.Credential = credential(u)
	}
}

// credential is the system's form of a user.
func credential(u *container.User) *syscall.Credential {
	c := &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID)}
	for _, g := range u.Groups {
		c.Groups = append(c.Groups, uint32(g))
	}
	return c
}

// startBeside starts a command in the surroundings of the running shim pid.
func (r *Runtime) startBeside(rec runstate.Record, pid int, attr *os.ProcAttr, args []string) (*os.Process, error) {
	spec := &rec.Spec
	env, odd := split(spec.Env)
	if len(odd) > 0 {
		args = append(append([]string{"env"}, odd...), args...)
	}
	attr.Env = append(env, marker(spec.ID))
	leave, err := r.groups.Enter(rec.Groups, attr.Sys)
	if err != nil {
		return nil, err
	}
	defer leave()
	var proc *os.Process
	err = thread.Run(func() error {
		if r.spaces {
			if err := joinAll(spec, pid); err != nil {
				return err
			}
			become(attr.Sys, spec.User)
		}
		if err := r.groups.Join(rec.Groups); err != nil {
			return err
		}
		program, err := Find(args[0], spec.Dir, spec.Env)
		if err != nil {
			return err
		}
		attr.Dir = spec.Dir
		proc, err = os.StartProcess(program, args, attr)
		return err
	})
	return proc, err
}

// joinAll moves the calling thread into the namespaces of a running shim.
func joinAll(spec *container.Spec, pid int) error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("cannot leave the shared root: %w", err)
	}
	var errs []error
	join := func(name string, kind int) {
		errs = append(errs, joinSpace(fmt.Sprintf("/proc/%d/ns/%s", pid, name), kind))
	}
	if spec.Netns != "" {
		join("net", unix.CLONE_NEWNET)
	}
	if spec.Hostname != "" {
		join("uts", unix.CLONE_NEWUTS)
	}
	if len(spec.Mounts) > 0 {
		join("mnt", unix.CLONE_NEWNS) // last: it hides our /proc paths
	}
	return errors.Join(errs...)
}
