// SPDX-License-Identifier: Apache-2.0

package rootless

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// User is the user who stands behind the root of a user namespace.
type User struct{ UID, GID int }

// Owner returns the ordinary user as whose process this one runs in a user
// namespace, and whether it does.
func Owner() (User, bool) {
	uid, ok := single("/proc/self/uid_map")
	if !ok || os.Geteuid() != 0 {
		return User{}, false
	}
	gid, ok := single("/proc/self/gid_map")
	return User{UID: uid, GID: gid}, ok
}

// single reads the ID map of a user namespace that maps only root: who root is
// outside.
func single(path string) (outside int, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	return parseSingle(string(text))
}

// parseSingle reads "INSIDE OUTSIDE COUNT". Further lines are further users.
func parseSingle(text string) (outside int, ok bool) {
	var inside, count, more int
	n, _ := fmt.Sscan(text, &inside, &outside, &count, &more)
	return outside, n == 3 && inside == 0 && count == 1
}

// Root reports whether this process is root of the machine, or of a container
// with its own users.
func Root() bool {
	_, owner := Owner()
	return os.Geteuid() == 0 && !owner
}

// AsUser makes a process start in its own user namespace, in which the user
// returned by Owner has the IDs u, that user's own or others, without any
// privileges beyond the user's.
func AsUser(sys *syscall.SysProcAttr, u User) {
	sys.Cloneflags |= unix.CLONE_NEWUSER
	sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: u.UID, HostID: 0, Size: 1}}
	sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: u.GID, HostID: 0, Size: 1}}
}

// Enter executes this program anew, with the same arguments, as root of a user
// namespace: of that in which the first of the processes lives that AsUser
// made, or of a new one. It returns nil where there is nothing to do, for root and in
// such a namespace, and otherwise only with an error: the reason and the remedy.
// It must come before anything that a second execution would do twice.
func Enter(processes []int) error {
	if os.Geteuid() == 0 {
		keepPrivate()
		return nil
	}
	nsenter, err := lookNsenter()
	if err != nil {
		return err
	}
	space, err := find(processes)
	if err != nil {
		return err
	}
	defer space.Close()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program: %w", err)
	}
	if _, err := unix.FcntlInt(space.Fd(), unix.F_SETFD, 0); err != nil { // nsenter inherits it
		return fmt.Errorf("cannot pass on the user namespace: %w", err)
	}
	args := append([]string{"nsenter", fmt.Sprintf("--user=/proc/self/fd/%d", space.Fd()), "--preserve-credentials", "--", self}, os.Args[1:]...)
	return fmt.Errorf("cannot execute %s: %w", nsenter, syscall.Exec(nsenter, args, os.Environ()))
}

// keepPrivate closes the file of a user namespace, by which nsenter came here, to
// the programs that this process starts.
func keepPrivate() {
	files, _ := os.ReadDir("/proc/self/fd")
	for _, file := range files {
		to, _ := os.Readlink("/proc/self/fd/" + file.Name())
		if fd, err := strconv.Atoi(file.Name()); err == nil && strings.HasPrefix(to, "user:") {
			syscall.CloseOnExec(fd)
		}
	}
}

func lookNsenter() (path string, err error) {
	if path, err = exec.LookPath("nsenter"); err != nil {
		return "", errors.New("the program nsenter is missing: install util-linux")
	}
	return path, nil
}

// Allowed returns why this process, which has not entered a user namespace,
// cannot have one; nil if it can.
func Allowed() error {
	if _, err := lookNsenter(); err != nil {
		return err
	}
	space, err := create()
	if err == nil {
		space.Close()
	}
	return err
}

// find opens the parent user namespace of a process, or else a new one.
func find(processes []int) (*os.File, error) {
	for _, pid := range processes {
		if space, err := above(pid); err == nil {
			return space, nil
		}
	}
	return create()
}

// above opens the parent of a process's user namespace. It is this process's own
// where the container was started without one, and then of no use.
func above(pid int) (*os.File, error) {
	own, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", pid))
	if err != nil {
		return nil, err
	}
	defer own.Close()
	fd, err := unix.IoctlRetInt(int(own.Fd()), unix.NS_GET_PARENT)
	if err != nil {
		return nil, err
	}
	space := os.NewFile(uintptr(fd), "user namespace")
	var here, there unix.Stat_t
	if err := errors.Join(unix.Stat("/proc/self/ns/user", &here), unix.Fstat(fd, &there)); err != nil || here.Ino == there.Ino {
		space.Close()
		return nil, errors.Join(err, errors.New("the process has no user namespace of its own"))
	}
	return space, nil
}

// try asks for what the namespace is for, so that a system that allows it in
// name alone is found out, and then waits.
const try = "mount --rbind /tmp /tmp && echo allowed && read _"

// create makes a user namespace that lives as long as the file.
func create() (*os.File, error) {
	cmd := exec.Command("/bin/sh", "-c", try)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	var words strings.Builder
	cmd.Stderr = &words
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, forbidden(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	space, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
	in.Close()
	ended := cmd.Wait()
	if line != "allowed\n" {
		if err == nil {
			space.Close()
		}
		return nil, forbidden(errors.Join(ended, errors.New(strings.TrimSpace(words.String()))))
	}
	return space, err
}

// forbidden explains why there is no user namespace with rights.
func forbidden(cause error) error {
	return fmt.Errorf("this system does not allow user namespaces (%s): %s",
		strings.ReplaceAll(cause.Error(), "\n", ": "), remedy(func(path string) string {
			text, _ := os.ReadFile(path)
			return strings.TrimSpace(string(text))
		}))
}
