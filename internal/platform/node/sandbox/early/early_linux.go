// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package early

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

func init() {
	if len(os.Args) == 0 || os.Args[0] != Name {
		return
	}
	runtime.LockOSThread() // to the end: the thread enters namespaces, and is the child's parent
	os.Exit(monitor())
}

// monitor does its job and returns the program's exit code.
func monitor() int {
	for fd := JobFile; fd < Files; fd++ {
		syscall.CloseOnExec(fd)
	}
	syscall.Close(SelfFile)
	var job Job
	text, err := os.ReadFile("/proc/self/fd/" + strconv.Itoa(JobFile))
	if err == nil {
		syscall.Close(JobFile)
		err = job.Decode(text)
	}
	if err != nil {
		return tell(Result{Error: "cannot read what to do: " + err.Error()})
	}
	if job.Join != 0 {
		return beside(&job)
	}
	return container(&job)
}

// tell reports how the start went. It is said once, and nothing is after it.
func tell(r Result) int {
	write(StatusFile, r.Encode())
	if null, err := syscall.Open("/dev/null", syscall.O_RDWR|oCloexec, 0); err == nil {
		syscall.Dup3(null, 2, oCloexec)
		syscall.Close(null)
	} else {
		syscall.Close(2)
	}
	syscall.Close(StatusFile)
	return 1
}

// explain makes a Result of an error.
func explain(err error) Result {
	r := Result{Error: err.Error()}
	if refused := (*refusal)(nil); errors.As(err, &refused) {
		r.Code = refused.code
	}
	return r
}

func write(fd int, text []byte) {
	for len(text) > 0 {
		n, err := syscall.Write(fd, text)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return // the disk is full, or nobody listens
		}
		text = text[n:]
	}
}

// container starts a new container and is its monitor.
func container(job *Job) int {
	child, err := create1(job)
	if err != nil {
		return tell(explain(err))
	}
	tell(Result{PID: child.pid, Mounts: child.mounts})
	ignore()
	code := child.wait()
	write(RunFile, []byte(strconv.Itoa(code)+"\n"))
	if job.Kept {
		syscall.Close(KeptFile)
		for one := make([]byte, 1); ; {
			if n, err := syscall.Read(DoneFile, one); n <= 0 && err != syscall.EINTR {
				break
			}
		}
	}
	return code
}

// running is a child that has become the program.
type running struct {
	pid    int
	pidfd  int
	output int // the pipe of its output; -1 is none
	mounts string
}

// create1 makes a container up to its program.
func create1(job *Job) (*running, error) {
	const spaces = cloneNewns | cloneNewuts | cloneNewipc
	if _, _, errno := syscall.Syscall(syscall.SYS_UNSHARE, spaces, 0, 0); errno != 0 {
		return nil, fail(errno, "make namespaces")
	}
	mounts, err := os.Readlink("/proc/thread-self/ns/mnt")
	if err != nil {
		return nil, err
	}
	if job.Netns != "" {
		if err := joinNet(job.Netns); err != nil {
			return nil, err
		}
	}
	if job.Hostname != "" {
		if err := syscall.Sethostname([]byte(job.Hostname)); err != nil {
			return nil, fmt.Errorf("cannot set the host name %q: %w", job.Hostname, err)
		}
	}
	for i := 0; i+1 < len(job.Sysctls); i += 2 {
		name, value := job.Sysctls[i], job.Sysctls[i+1]
		if err := sysctl(name, value); err != nil {
			return nil, &refusal{128, fmt.Errorf("cannot set the sysctl %s: %w", name, err)}
		}
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("cannot detach the machine's mounts: %w", err)
	}
	c, err := newChild(job)
	if err != nil {
		return nil, err
	}
	defer c.close()
	b := c.birth
	if job.Among == 0 {
		b.clone.flags |= cloneNewpid
	} else if b.among, err = joinProcesses(job.Among, job.AmongBegan); err != nil {
		return nil, err
	}
	b.root = c.cstring(rootAt(job))
	b.join = none
	talk, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(talk[0])
	b.talk = uintptr(talk[1])
	if err := c.start(); err != nil {
		return nil, err
	}
	if job.InGroup {
		syscall.Close(GroupFile)
	}
	// It mounts what is of its own namespaces meanwhile.
	t := &tree{job: job}
	if err = t.make(); err == nil {
		err = begin(c, t, talk[0], talk[1])
	}
	if err != nil {
		c.kill()
		return nil, err
	}
	if err := c.executed(); err != nil {
		return nil, err
	}
	return &running{pid: c.pid, pidfd: int(b.pidfd), output: c.output, mounts: mounts}, nil
}

// joinProcesses has the children of this thread be in the process namespace of a container. It
// returns the pidfd of its first process.
func joinProcesses(pid int, began uint64) (uintptr, error) {
	pidfd, err := pidfdOpen(pid)
	if err != nil {
		return none, fmt.Errorf("cannot find the program of the other container: %w", err)
	}
	if now, err := Began(pid); err != nil || now != began {
		return none, errors.New("the program of the other container has ended")
	}
	// Nobody there may look into the child before it is the program.
	if _, _, errno := syscall.Syscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); errno != 0 {
		return none, errno
	}
	if err := setns(pidfd, cloneNewpid); err != nil {
		return none, fmt.Errorf("cannot join the processes of the other container: %w", err)
	}
	return uintptr(pidfd), nil
}

// begin completes the root directory with what the child has mounted, records the child,
// and lets it go on.
func begin(c *child, t *tree, talk, other int) error {
	syscall.Close(other)
	var made [2]uintptr
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&made)), unsafe.Sizeof(made))
	n, err := syscall.Read(talk, bytes)
	for err == syscall.EINTR {
		n, err = syscall.Read(talk, bytes)
	}
	if n != len(bytes) {
		return c.executed() // it has said why
	}
	fds := [2]int{-1, -1}
	for i, fd := range made {
		if fd == none {
			continue
		}
		if fds[i], err = pidfdGetfd(int(c.birth.pidfd), int(fd)); err != nil {
			return fmt.Errorf("cannot take a mount from the container's init: %w", err)
		}
		defer syscall.Close(fds[i])
	}
	if err := t.finish(fds[0], fds[1]); err != nil {
		return err
	}
	began, err := Began(c.pid)
	if err != nil {
		return err
	}
	write(RunFile, fmt.Appendf(nil, "%d %d\n", c.pid, began))
	if _, err := syscall.Write(talk, []byte{1}); err != nil {
		return err
	}
	return nil
}

// Began is when a process started, in the kernel's ticks since the machine did. With the
// pid it names a process for ever. The error is os.ErrProcessDone for one that has ended and
// that nobody has waited for: of the first process of a container no other is left then.
func Began(pid int) (uint64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // from the third
	if len(fields) < 20 {
		return 0, errors.New("/proc has no start time")
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return 0, os.ErrProcessDone
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

func joinNet(path string) error {
	fd, err := syscall.Open(path, syscall.O_RDONLY|oCloexec, 0)
	if err != nil {
		return fmt.Errorf("cannot open the network namespace %s: %w", path, err)
	}
	defer syscall.Close(fd)
	if err := setns(fd, cloneNewnet); err != nil {
		return fmt.Errorf("cannot join the network namespace %s: %w", path, err)
	}
	return nil
}

// sysctl sets a parameter of the thread's namespaces.
func sysctl(name, value string) error {
	dir, err := syscall.Open("/proc/sys", oPath|oDirectory|oCloexec, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(dir)
	fd, err := openat2(dir, strings.ReplaceAll(name, ".", "/"), syscall.O_WRONLY, resolveNoSymlinks|resolveBeneath)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	var fs syscall.Statfs_t
	if err := syscall.Fstatfs(fd, &fs); err != nil {
		return err
	}
	if fs.Type != procMagic {
		return errors.New("it is not of the kernel")
	}
	_, err = syscall.Write(fd, []byte(value))
	return err
}

// ignore makes the monitor deaf to the signals that are for its program.
func ignore() {
	action := [4]uintptr{1} // SIG_IGN
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGALRM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE} {
		syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	}
}

type pollfd struct {
	fd              int32
	events, revents int16
}

const pollin = 1

// wait copies the output to the log until the program has ended, and returns its code.
func (r *running) wait() int {
	buffer := make([]byte, 32<<10)
	syscall.Close(0)
	files := []pollfd{{fd: int32(r.pidfd), events: pollin}, {fd: int32(r.output), events: pollin}}
	for files[0].revents == 0 {
		_, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&files[0])), uintptr(len(files)), 0, 0, 0, 0)
		if errno != 0 {
			files[0].revents, files[1].revents = 0, 0
			continue
		}
		if files[1].revents != 0 {
			if n, err := syscall.Read(r.output, buffer); n > 0 {
				write(1, buffer[:n])
			} else if err != syscall.EINTR && err != syscall.EAGAIN {
				files[1].fd = -1
			}
		}
	}
	code := reap(r.pid)
	// All processes of its namespace have ended. Others may have been given its output.
	for r.output >= 0 {
		n, err := syscall.Read(r.output, buffer)
		if n > 0 {
			write(1, buffer[:n])
		} else if err != syscall.EINTR {
			break
		}
	}
	return code
}

// reap waits for a child and returns its code, 128 and the signal for one that was killed.
func reap(pid int) int {
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return 255
		}
		if status.Signaled() {
			return 128 + int(status.Signal())
		}
		return status.ExitStatus()
	}
}
