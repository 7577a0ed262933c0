// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package early

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// child is a child and the parent's ends of what joins them.
type child struct {
	birth  *birth
	job    *Job
	pid    int
	output int // the pipe of its output; -1 is none
	errors int // what it says when it fails
	files  []int
}

const (
	capSysAdmin = 1 << 21
	dupFrom     = 64 // numbers that are no standard files
)

// newChild prepares a child that becomes the job's program.
func newChild(job *Job) (*child, error) {
	b := &birth{uid: uintptr(job.UID), gid: uintptr(job.GID), caps: job.Capabilities, nnp: job.NoNewPrivileges, userns: job.Userns && job.Join == 0, shared: job.AmongUser, idles: job.Idle, among: none, pause: syscall.Timespec{Nsec: 5e6}}
	c := &child{birth: b, job: job, output: -1}
	b.clone.flags = clonePidfd | cloneClearSig
	b.clone.pidfd = uint64(uintptr(unsafe.Pointer(&b.pidfd)))
	b.clone.exitSignal = uint64(syscall.SIGCHLD)
	if job.InGroup {
		b.clone.flags |= cloneIntoGroup
		b.clone.group = GroupFile
	}
	for _, name := range job.Tasks {
		fd, err := syscall.Open(name, syscall.O_WRONLY|oCloexec, 0)
		if err != nil {
			return nil, fmt.Errorf("cannot open the cgroup: %w", err)
		}
		c.files = append(c.files, fd)
		b.tasks = append(b.tasks, uintptr(fd))
	}
	if err := c.stdio(); err != nil {
		return nil, err
	}
	report := make([]int, 2)
	if err := syscall.Pipe2(report, oCloexec); err != nil {
		return nil, err
	}
	c.errors = report[0]
	c.files = append(c.files, report[1])
	b.report = uintptr(report[1])

	if len(job.Groups) > 0 {
		b.keep = append(b.keep, job.Groups)
		b.groups, b.nGroups = uintptr(unsafe.Pointer(&job.Groups[0])), uintptr(len(job.Groups))
	}
	b.uidMap = c.span(fmt.Sprintf("%d 0 1\n", job.UID))
	b.gidMap = c.span(fmt.Sprintf("%d 0 1\n", job.GID))
	if job.UID == 0 {
		b.hold = job.Capabilities
	}
	if len(job.Seccomp) > 0 {
		if !job.NoNewPrivileges {
			b.hold |= capSysAdmin
		}
		program := &struct {
			size uint16
			at   *byte
		}{uint16(len(job.Seccomp) / 8), &job.Seccomp[0]}
		b.keep = append(b.keep, program)
		b.filter, b.fflags = uintptr(unsafe.Pointer(program)), job.SeccompFlags
	}
	b.dir = c.cstring(job.Dir)
	b.argv, b.envp = c.vector(job.Args), c.vector(job.Env)
	for _, path := range candidates(job) {
		b.paths = append(b.paths, c.cstring(path))
	}
	return c, nil
}

// defaultPath is the PATH of a container whose environment has none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// candidates are the paths to try for the program.
func candidates(job *Job) []string {
	program := job.Args[0]
	if strings.Contains(program, "/") || program == "" {
		return []string{program}
	}
	search := defaultPath
	for _, v := range job.Env {
		if value, ok := strings.CutPrefix(v, "PATH="); ok {
			search = value
		}
	}
	var paths []string
	for dir := range strings.SplitSeq(search, ":") {
		if dir == "" {
			dir = "."
		}
		paths = append(paths, dir+"/"+program)
	}
	return paths
}

// stdio makes the program's standard files.
func (c *child) stdio() error {
	from := [3]int{0, 1, 1}
	switch {
	case c.job.Direct:
		from[2] = ErrorFile
		if c.job.TTY {
			from = [3]int{0, 0, 0}
		}
	case c.job.TTY:
		from = [3]int{0, 0, 0}
	default:
		// A pipe, not the log: a program that opens /dev/stdout anew would else truncate
		// it, or write from its start. It is the user's, who may open it thus.
		pipe := make([]int, 2)
		if err := syscall.Pipe2(pipe, oCloexec); err != nil {
			return err
		}
		c.files = append(c.files, pipe[1])
		c.output = pipe[0]
		if err := syscall.SetNonblock(pipe[0], true); err != nil {
			return err
		}
		if !c.job.Userns {
			if err := syscall.Fchown(pipe[1], int(c.job.UID), int(c.job.GID)); err != nil {
				return err
			}
		}
		from[1], from[2] = pipe[1], pipe[1]
	}
	for i, fd := range from {
		dup, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD_CLOEXEC, dupFrom)
		if errno != 0 {
			return errno
		}
		c.files = append(c.files, int(dup))
		c.birth.stdio[i] = dup
	}
	c.birth.tty = c.job.TTY
	return nil
}

func (c *child) cstring(s string) uintptr {
	p := cstring(s)
	c.birth.keep = append(c.birth.keep, p)
	return uintptr(unsafe.Pointer(p))
}

func (c *child) span(s string) span { return span{c.cstring(s), uintptr(len(s))} }

// vector is a list of strings as execve takes it.
func (c *child) vector(list []string) uintptr {
	v := make([]*byte, len(list)+1)
	for i, s := range list {
		v[i] = cstring(s)
	}
	c.birth.keep = append(c.birth.keep, v)
	return uintptr(unsafe.Pointer(&v[0]))
}

// start makes the child. Signals wait meanwhile, so that none reaches it as a part of Go.
func (c *child) start() error {
	all, old := ^uint64(0), uint64(0)
	const setmask = 2
	syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setmask, uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&old)), 8, 0, 0)
	pid, errno := c.birth.start()
	syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setmask, uintptr(unsafe.Pointer(&old)), 0, 8, 0, 0)
	c.birth.alive()
	if errno != 0 {
		return fail(errno, "make the container's first process")
	}
	c.pid = int(pid)
	for _, fd := range c.files {
		syscall.Close(fd)
	}
	c.files = nil
	return nil
}

// executed waits until the child has become the program, or has failed.
func (c *child) executed() error {
	buffer := make([]byte, 8)
	n, err := syscall.Read(c.errors, buffer)
	for err == syscall.EINTR {
		n, err = syscall.Read(c.errors, buffer)
	}
	if n == 0 && err == nil {
		return nil
	}
	code := reap(c.pid)
	if n != len(buffer) {
		return fmt.Errorf("the container's init has ended with code %d", code)
	}
	s := step(*(*uint32)(unsafe.Pointer(&buffer[0])))
	errno := syscall.Errno(*(*uint32)(unsafe.Pointer(&buffer[4])))
	switch {
	case s == stepExec:
		return c.notExecuted(errno)
	case s == stepDir && errno == syscall.EXDEV:
		return &refusal{128, fmt.Errorf("cannot enter the working directory %s: it is outside of the container", c.job.Dir)}
	case s == stepDir:
		return &refusal{128, fmt.Errorf("cannot enter the working directory %s: %w", c.job.Dir, errno)}
	}
	return fail(errno, "%s", stepNames[s])
}

// notExecuted says why there is no program.
func (c *child) notExecuted(errno syscall.Errno) error {
	name := strconv.Quote(c.job.Args[0])
	switch errno {
	case syscall.ENOENT, syscall.ENOTDIR:
		if strings.Contains(c.job.Args[0], "/") {
			return &refusal{127, fmt.Errorf("cannot find the program %s in the image: %w", name, errno)}
		}
		return &refusal{127, fmt.Errorf("cannot find the program %s in the image: executable file not found in $PATH", name)}
	case syscall.EACCES:
		return &refusal{126, fmt.Errorf("cannot run %s: %w: the file is not executable for this user", name, errno)}
	case syscall.ENOEXEC:
		return &refusal{126, fmt.Errorf("cannot run %s: %w: it is no program for this machine, or a script without its interpreter's name", name, errno)}
	}
	return &refusal{128, fmt.Errorf("cannot run %s: %w", name, errno)}
}

// kill ends a child that has not become the program.
func (c *child) kill() {
	syscall.Kill(c.pid, syscall.SIGKILL)
	reap(c.pid)
}

// close closes what is not needed once the program runs.
func (c *child) close() {
	for _, fd := range c.files {
		syscall.Close(fd)
	}
	syscall.Close(c.errors)
}

// beside runs a command in a container, and returns its code.
func beside(job *Job) int {
	code, err := besideProgram(job)
	if err != nil {
		return tell(explain(err))
	}
	return code
}

func besideProgram(job *Job) (int, error) {
	pidfd, err := joinProcesses(job.Join, job.JoinBegan)
	if err != nil {
		return 0, err
	}
	c, err := newChild(job)
	if err != nil {
		return 0, err
	}
	defer c.close()
	c.birth.join = pidfd
	c.birth.joinFlags = cloneNewns | cloneNewuts | cloneNewipc | cloneNewcgroup
	if job.Netns != "" {
		c.birth.joinFlags |= cloneNewnet
	}
	if job.Userns {
		c.birth.joinFlags |= cloneNewuser
	}
	if err := c.start(); err != nil {
		return 0, err
	}
	if err := c.executed(); err != nil {
		return 0, err
	}
	tell(Result{PID: c.pid})
	ignore()
	for fd := range 3 { // they are the program's alone
		syscall.Close(fd)
	}
	syscall.Close(ErrorFile)
	return reap(c.pid), nil
}
