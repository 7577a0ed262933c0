// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/sandbox/early"
	"diwan.dev/diwan/internal/platform/node/stream"
)

// Exec runs a command beside the program, with its rights.
func (r *run) Exec(ctx context.Context, args []string, s container.Streams) error {
	failed := func(err error) error {
		return fmt.Errorf("cannot run a command in container %s: %w", r.record.Spec.ID, err)
	}
	select {
	case <-r.done:
		return failed(errors.New("it has ended"))
	default:
	}
	if len(args) == 0 || args[0] == "" {
		return failed(errors.New("there is no command"))
	}
	if err := r.signal(0); err != nil { // its number may be another's now
		return failed(err)
	}
	job := r.job()
	job.Join, job.JoinBegan, job.Args, job.Direct, job.TTY = r.pid, r.began, args, true, s.TTY
	session := &stream.Session{Streams: s, Terminal: r.terminal}
	attr := &os.ProcAttr{Sys: new(syscall.SysProcAttr)}
	if err := session.Open(attr); err != nil {
		return failed(err)
	}
	files := make([]*os.File, early.Files)
	files[0], files[1], files[early.ErrorFile] = attr.Files[0], attr.Files[1], attr.Files[2]
	monitor, result, err := r.launch(ctx, job, files)
	if err == nil && result.Error != "" {
		monitor.Wait()
		err = r.judge(result)
	}
	session.Started(err == nil)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return failed(err)
	}
	stop := context.AfterFunc(ctx, func() { monitor.Kill() }) // and the kernel kills the command
	status, _ := monitor.Wait()
	stop()
	session.Finish()
	if err := ctx.Err(); err != nil {
		return err
	}
	if code := status.ExitCode(); code != 0 {
		return &container.ExitError{Code: code}
	}
	return nil
}

// terminal opens a pair of the container's own terminals, which its programs can name. What
// is in the place of its /dev/pts/ptmx must be the kernel's.
func (r *run) terminal() (master, slave *os.File, err error) {
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", r.pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	defer unix.Close(root)
	fd, err := unix.Openat2(root, "dev/pts/ptmx", &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("cannot find the container's terminals: %w", err)
	}
	defer unix.Close(fd)
	var fs unix.Statfs_t
	var stat unix.Stat_t
	if err := errors.Join(unix.Fstatfs(fd, &fs), unix.Fstat(fd, &stat)); err != nil {
		return nil, nil, err
	}
	if fs.Type != unix.DEVPTS_SUPER_MAGIC || stat.Mode&unix.S_IFMT != unix.S_IFCHR || stat.Rdev != unix.Mkdev(5, 2) {
		return nil, nil, errors.New("the container's terminals are not the kernel's")
	}
	open, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open a terminal: %w", err)
	}
	master = os.NewFile(uintptr(open), "terminal")
	if err := unix.IoctlSetPointerInt(open, unix.TIOCSPTLCK, 0); err != nil {
		master.Close()
		return nil, nil, fmt.Errorf("cannot unlock a terminal: %w", err)
	}
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(open), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		master.Close()
		return nil, nil, fmt.Errorf("cannot open a terminal: %w", errno)
	}
	slave = os.NewFile(peer, "terminal")
	if u := r.record.Spec.User; u != nil && !r.runtime.ordinary {
		if err := slave.Chown(int(u.UID), -1); err != nil {
			master.Close()
			slave.Close()
			return nil, nil, err
		}
	}
	return master, slave, nil
}
