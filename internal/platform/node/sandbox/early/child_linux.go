// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package early

import (
	"runtime"
	"syscall"
	"unsafe"
)

// The child is a fork of one thread of a Go process. Of the runtime only this code is left
// in it, so it calls nothing that might allocate, block in the scheduler or grow the
// stack: its functions are nosplit, and use only what the parent has prepared in a birth.

// step names what the child does, for the report of a failure.
type step uint32

const (
	stepNone step = iota
	stepGroup
	stepCgroupns
	stepProc
	stepTalk
	stepJoin
	stepPivot
	stepSession
	stepTerminal
	stepFiles
	stepKeyring
	stepUserns
	stepIDs
	stepCapabilities
	stepDir
	stepPrivileges
	stepSeccomp
	stepExec
)

var stepNames = [...]string{
	stepGroup:        "join the cgroup",
	stepCgroupns:     "make a cgroup namespace",
	stepProc:         "mount /proc",
	stepTalk:         "hear from the monitor",
	stepJoin:         "join the container's namespaces",
	stepPivot:        "change the root directory",
	stepSession:      "begin a session",
	stepTerminal:     "take the terminal",
	stepFiles:        "pass on the standard files",
	stepKeyring:      "make a keyring",
	stepUserns:       "make a user namespace",
	stepIDs:          "become the user",
	stepCapabilities: "give up capabilities",
	stepDir:          "enter the working directory",
	stepPrivileges:   "set no_new_privs",
	stepSeccomp:      "install the seccomp profile",
	stepExec:         "execute the program",
}

// cloneArgs is struct clone_args.
type cloneArgs struct {
	flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, group uint64
}

// birth is what the child needs. Addresses are of memory that keep holds.
type birth struct {
	keep  []any
	clone cloneArgs
	pidfd int32

	join      uintptr // pidfd of a container, or ^0
	joinFlags uintptr
	among     uintptr   // pidfd of a container whose process namespace this is, or ^0
	shared    bool      // its user namespace, too
	idles     bool      // it becomes no program
	tasks     []uintptr // files to write "0" into
	talk      uintptr   // socket to the monitor
	report    uintptr   // pipe to the monitor, closed by the execution
	root      uintptr   // path of the new root directory
	stdio     [3]uintptr
	tty       bool
	userns    bool
	gidMap    span
	uidMap    span
	uid, gid  uintptr
	groups    uintptr
	nGroups   uintptr
	caps      uint64
	hold      uint64 // capabilities until the execution
	nnp       bool
	filter    uintptr // struct sock_fprog
	fflags    uintptr
	dir       uintptr
	paths     []uintptr
	argv      uintptr
	envp      uintptr

	proc, group uintptr // what the child has mounted, or ^0
	ack         byte
	words       [2]uint32
	mask        uint64
	capHeader   [2]uint32
	capData     [6]uint32
	cwd         [syscall.PathMax]byte
	pause       syscall.Timespec
	action      [4]uintptr // struct sigaction
}

type span struct{ at, size uintptr }

const none = ^uintptr(0)

// Strings of the child, with their zero bytes.
var (
	zProc     = []byte("proc\x00")
	zCgroup2  = []byte("cgroup2\x00")
	zDot      = []byte(".\x00")
	zRoot     = []byte("/\x00")
	zZero     = []byte("0")
	zDeny     = []byte("deny")
	zSelfSet  = []byte("self/setgroups\x00")
	zSelfGID  = []byte("self/gid_map\x00")
	zSelfUID  = []byte("self/uid_map\x00")
	capsFirst = uint32(0x20080522) // _LINUX_CAPABILITY_VERSION_3
)

//go:nosplit
//go:norace
func sys(number, a, b, c, d uintptr) (uintptr, syscall.Errno) {
	r, _, errno := syscall.RawSyscall6(number, a, b, c, d, 0, 0)
	return r, errno
}

//go:nosplit
//go:norace
//go:nocheckptr
func at(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// start makes the child. The parent gets its pid.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func (b *birth) start() (pid uintptr, errno syscall.Errno) {
	pid, errno = sys(sysClone3, uintptr(unsafe.Pointer(&b.clone)), unsafe.Sizeof(b.clone), 0, 0)
	if pid == 0 && errno == 0 {
		b.child()
	}
	return pid, errno
}

// fail reports and ends the child.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (b *birth) fail(s step, errno syscall.Errno) {
	b.words[0], b.words[1] = uint32(s), uint32(errno)
	sys(syscall.SYS_WRITE, b.report, uintptr(unsafe.Pointer(&b.words)), 8, 0)
	for {
		sys(syscall.SYS_EXIT_GROUP, 1, 0, 0, 0)
	}
}

// must makes a system call, without which there is no container.
//
//go:nosplit
//go:norace
func (b *birth) must(s step, number, x, y, z, u uintptr) uintptr {
	r, errno := sys(number, x, y, z, u)
	if errno != 0 {
		b.fail(s, errno)
	}
	return r
}

// child is the child's life up to the program.
//
//go:noinline
//go:nosplit
//go:norace
func (b *birth) child() {
	for i := range b.tasks {
		b.must(stepGroup, syscall.SYS_WRITE, b.tasks[i], at(zZero), 1, 0)
	}
	if b.join != none {
		b.beside()
	} else {
		b.begin()
	}
	b.must(stepSession, syscall.SYS_SETSID, 0, 0, 0, 0)
	if b.tty {
		b.must(stepTerminal, syscall.SYS_IOCTL, b.stdio[0], syscall.TIOCSCTTY, 0, 0)
	}
	for i := range b.stdio {
		b.must(stepFiles, syscall.SYS_DUP3, b.stdio[i], uintptr(i), 0, 0)
	}
	b.must(stepFiles, sysCloseRange, 3, uintptr(^uint32(0)), 4, 0) // CLOSE_RANGE_CLOEXEC
	b.confine()
	if b.idles {
		b.idle()
	}
	b.execute()
}

// begin is the part of a new container's PID 1.
//
//go:nosplit
//go:norace
func (b *birth) begin() {
	b.must(stepCgroupns, syscall.SYS_UNSHARE, cloneNewcgroup, 0, 0, 0)
	b.proc = b.mount(at(zProc), mountAttrNosuid|mountAttrNodev|mountAttrNoexec)
	b.group = b.mount(at(zCgroup2), mountAttrNosuid|mountAttrNodev|mountAttrNoexec|mountAttrRdonly)
	b.must(stepTalk, syscall.SYS_WRITE, b.talk, uintptr(unsafe.Pointer(&b.proc)), unsafe.Sizeof(b.proc)*2, 0)
	if n := b.must(stepTalk, syscall.SYS_READ, b.talk, uintptr(unsafe.Pointer(&b.ack)), 1, 0); n != 1 {
		b.fail(stepTalk, syscall.EPIPE)
	}
	b.must(stepPivot, syscall.SYS_CHDIR, b.root, 0, 0, 0)
	b.must(stepPivot, syscall.SYS_PIVOT_ROOT, at(zDot), at(zDot), 0, 0) // the old root now lies over the new one
	b.must(stepPivot, syscall.SYS_UMOUNT2, at(zDot), syscall.MNT_DETACH, 0, 0)
	b.must(stepPivot, syscall.SYS_CHDIR, at(zRoot), 0, 0, 0)
}

// mount makes a file system of this process's own namespaces. It is none where the kernel
// does not allow it; the monitor decides what then.
//
//go:nosplit
//go:norace
func (b *birth) mount(kind, attr uintptr) uintptr {
	fs, errno := sys(sysFsopen, kind, fsopenCloexec, 0, 0)
	if errno != 0 {
		return none
	}
	if _, errno := sys(sysFsconfig, fs, fsconfigCreate, 0, 0); errno != 0 {
		return none
	}
	fd, errno := sys(sysFsmount, fs, fsmountCloexec, attr, 0)
	if errno != 0 {
		return none
	}
	return fd
}

// beside joins a container. Nobody there may look into this process before it is the
// program.
//
//go:nosplit
//go:norace
func (b *birth) beside() {
	b.must(stepJoin, syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0, 0)
	b.must(stepJoin, sysSetns, b.join, b.joinFlags&^cloneNewuser, 0, 0)
	if b.joinFlags&cloneNewuser != 0 { // last: it has no rights over the others
		b.must(stepJoin, sysSetns, b.join, cloneNewuser, 0, 0)
	}
}

// confine gives up what the program is not to have.
//
//go:nosplit
//go:norace
func (b *birth) confine() {
	const joinSession = 1
	if _, errno := sys(syscall.SYS_KEYCTL, joinSession, 0, 0, 0); errno != 0 && errno != syscall.ENOSYS {
		b.fail(stepKeyring, errno)
	}
	sys(syscall.SYS_UMASK, 0o022, 0, 0, 0)
	if b.userns {
		b.separate()
	}
	// The directory is entered with the rights of root, as the container's runtime.
	b.must(stepDir, syscall.SYS_CHDIR, b.dir, 0, 0, 0)
	b.must(stepDir, syscall.SYS_GETCWD, uintptr(unsafe.Pointer(&b.cwd)), uintptr(len(b.cwd)), 0, 0)
	if b.cwd[0] != '/' { // outside of the root directory
		b.fail(stepDir, syscall.EXDEV)
	}
	b.become()
	if b.nnp {
		b.must(stepPrivileges, syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0)
	}
	b.must(stepPrivileges, syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0)
}

const (
	prSetNoNewPrivs = 38
	prCapAmbient    = 47
	ambientClearAll = 4
	prSetKeepcaps   = 8
	prCapbsetDrop   = 24
)

// separate makes this process's user namespace, in which its user has the program's ids.
//
//go:nosplit
//go:norace
func (b *birth) separate() {
	if b.shared {
		b.must(stepUserns, sysSetns, b.among, cloneNewuser, 0, 0)
		return
	}
	b.must(stepUserns, syscall.SYS_UNSHARE, cloneNewuser, 0, 0, 0)
	b.put(at(zSelfSet), at(zDeny), uintptr(len(zDeny)))
	b.put(at(zSelfGID), b.gidMap.at, b.gidMap.size)
	b.put(at(zSelfUID), b.uidMap.at, b.uidMap.size)
}

// put writes to a file of the container's own /proc.
//
//go:nosplit
//go:norace
func (b *birth) put(name, text, size uintptr) {
	fd := b.must(stepUserns, syscall.SYS_OPENAT, b.proc, name, syscall.O_WRONLY|oCloexec, 0)
	b.must(stepUserns, syscall.SYS_WRITE, fd, text, size, 0)
	sys(syscall.SYS_CLOSE, fd, 0, 0, 0)
}

// become takes the program's ids and capabilities. What a program of root gets is its
// bounding set, and others get nothing, so the sets of this process only have to last
// until the execution.
//
//go:nosplit
//go:norace
func (b *birth) become() {
	sys(syscall.SYS_PRCTL, prCapAmbient, ambientClearAll, 0, 0)
	for bit := uintptr(0); bit < 64; bit++ {
		if b.caps&(1<<bit) != 0 {
			continue
		}
		if _, errno := sys(syscall.SYS_PRCTL, prCapbsetDrop, bit, 0, 0); errno == syscall.EINVAL {
			break // beyond the kernel's last
		} else if errno != 0 {
			b.fail(stepCapabilities, errno)
		}
	}
	b.must(stepCapabilities, syscall.SYS_PRCTL, prSetKeepcaps, 1, 0, 0)
	if !b.userns && b.join == none || b.join != none && b.joinFlags&cloneNewuser == 0 {
		b.must(stepIDs, syscall.SYS_SETGROUPS, b.nGroups, b.groups, 0, 0)
	}
	b.must(stepIDs, syscall.SYS_SETRESGID, b.gid, b.gid, b.gid, 0)
	b.must(stepIDs, syscall.SYS_SETRESUID, b.uid, b.uid, b.uid, 0)
	b.capHeader[0] = capsFirst
	b.capData[0], b.capData[1] = uint32(b.hold), uint32(b.hold)
	b.capData[3], b.capData[4] = uint32(b.hold>>32), uint32(b.hold>>32)
	b.must(stepCapabilities, syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&b.capHeader)), uintptr(unsafe.Pointer(&b.capData)), 0, 0)
}

// idle is the life of the first process of a namespace that several containers share. It
// has no rights, no files and an empty root directory: who looks into it finds nothing.
//
//go:nosplit
//go:norace
func (b *birth) idle() {
	b.must(stepPrivileges, syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0, 0)
	b.action[0] = 1 // SIG_IGN: the kernel buries those whose parents have ended
	b.must(stepSession, syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGCHLD), uintptr(unsafe.Pointer(&b.action)), 0, 8)
	if b.filter != 0 {
		b.must(stepSeccomp, sysSeccomp, 1, b.fflags, b.filter, 0) // SECCOMP_SET_MODE_FILTER
	}
	sys(sysCloseRange, 0, uintptr(^uint32(0)), 0, 0) // the report, too: it is ready
	b.pause.Nsec = 250e6
	const patience = 40
	for alone := 0; alone < patience; alone++ {
		sys(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&b.pause)), 0, 0, 0)
		if _, errno := sys(syscall.SYS_KILL, none, 0, 0, 0); errno != syscall.ESRCH { // all others
			alone = 0
		}
	}
	for {
		sys(syscall.SYS_EXIT_GROUP, 0, 0, 0, 0)
	}
}

// execute becomes the first of the paths that is a program.
//
//go:nosplit
//go:norace
func (b *birth) execute() {
	b.must(stepSession, syscall.SYS_RT_SIGPROCMASK, 2, uintptr(unsafe.Pointer(&b.mask)), 0, 8) // SIG_SETMASK
	if b.filter != 0 {
		b.must(stepSeccomp, sysSeccomp, 1, b.fflags, b.filter, 0) // SECCOMP_SET_MODE_FILTER
	}
	last := syscall.ENOENT
	for i := range b.paths {
		_, errno := sys(syscall.SYS_EXECVE, b.paths[i], b.argv, b.envp, 0)
		// A copy of the file was written a moment ago by a process that has forked meanwhile.
		for tries := 0; errno == syscall.ETXTBSY && tries < 200; tries++ {
			sys(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&b.pause)), 0, 0, 0)
			_, errno = sys(syscall.SYS_EXECVE, b.paths[i], b.argv, b.envp, 0)
		}
		if errno != syscall.ENOENT && errno != syscall.ENOTDIR {
			last = errno
			if errno != syscall.EACCES {
				break
			}
		}
	}
	b.fail(stepExec, last)
}

// alive keeps what the child needs until it has its own copy.
func (b *birth) alive() { runtime.KeepAlive(b) }
