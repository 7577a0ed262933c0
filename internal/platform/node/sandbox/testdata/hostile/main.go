// SPDX-License-Identifier: Apache-2.0

// Program hostile tries, in a container, what programs have left containers by. It prints a
// line "open NAME DETAIL" for each try that succeeds, and "tried N" at its end. Tries change
// nothing of the machine's: where one would, it stops at what gives the right to.
//
// Its arguments are tries to leave out. The environment says what is outside:
//
//	HOST_PID     a process of the machine, by its number there
//	HOST_FILE    a file of the machine that everybody may read
//	HOST_SOCKET  the name of an abstract socket of the machine
//	HOST_KEY     the description of a key of type user in the keyrings of this user
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// nested is the argument of the copy that runs in namespaces which the program made.
const nested = "nested"

var tried int

func main() {
	runtime.LockOSThread()
	left := os.Args[1:]
	if len(left) > 0 && left[0] == nested {
		tries(nestedTries, nil)
		return
	}
	tries(allTries, left)
	fmt.Println("tried", tried)
}

// try is one way out. It tells of each hole that it finds.
type try struct {
	name string
	run  func(open func(format string, args ...any))
}

func tries(list []try, left []string) {
	for _, t := range list {
		if slices.Contains(left, t.name) {
			continue
		}
		tried++
		t.run(func(format string, args ...any) {
			fmt.Printf("open %s "+format+"\n", append([]any{t.name}, args...)...)
		})
	}
}

var allTries = []try{
	{"proc", writableProc},
	{"sys", writableSys},
	{"cgroups", writableCgroups},
	{"mounts", mounts},
	{"namespaces", namespaces},
	{"setns", ownNamespaces},
	{"processes", processes},
	{"devices", devices},
	{"keys", keys},
	{"sockets", sockets},
	{"compat", compat},
	{"x32", x32},
	{"abstract", abstract},
	{"files", leakedFiles},
	{"handles", handles},
	{"chroot", leaveByChroot},
	{"kernel", kernel},
	{"limits", limits},
	{"nested", inNamespaces},
}

// nestedTries are those of a program that has all capabilities in a user namespace.
var nestedTries = []try{
	{"proc", writableProc},
	{"sys", writableSys},
	{"cgroups", writableCgroups},
	{"unmask", unmask},
	{"fresh", freshMounts},
	{"processes", processes},
	{"devices", devices},
	{"handles", handles},
	{"chroot", leaveByChroot},
}

// opens reports whether a file can be opened for writing. What is in the place of a hidden one
// does not count, nor do devices that every program has.
func opens(path string) bool {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	return unix.Fstat(fd, &stat) == nil && !(stat.Mode&unix.S_IFMT == unix.S_IFCHR && unix.Major(stat.Rdev) == 1)
}

// rewrites reports whether a file can be written, by writing what it holds.
func rewrites(path string) bool {
	text, err := os.ReadFile(path)
	return err == nil && os.WriteFile(path, append([]byte(strings.TrimSpace(string(text))), '\n'), 0) == nil
}

// writableProc opens the kernel's files, but for those of processes.
func writableProc(open func(string, ...any)) {
	filepath.WalkDir("/proc", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e == nil {
			return nil
		}
		name := e.Name()
		if e.IsDir() && filepath.Dir(path) == "/proc" && name[0] >= '0' && name[0] <= '9' {
			return fs.SkipDir
		}
		if e.IsDir() && name == "net" { // of the container's own network
			return fs.SkipDir
		}
		if name == "pressure" { // who writes there is told of pressure
			return fs.SkipDir
		}
		if info, err := e.Info(); err == nil && info.Mode().Perm()&0o222 != 0 && e.Type().IsRegular() && opens(path) {
			open("%s", path)
		}
		return nil
	})
	for _, file := range []string{"core_pattern", "modprobe", "hotplug", "poweroff_cmd", "usermodehelper/bset"} {
		if os.WriteFile("/proc/sys/kernel/"+file, []byte("|/x"), 0) == nil {
			open("%s written", file)
		}
	}
	if os.WriteFile("/proc/sys/fs/binfmt_misc/register", []byte(":x:M::x::/x:"), 0) == nil {
		open("binfmt_misc written")
	}
}

func writableSys(open func(string, ...any)) {
	filepath.WalkDir("/sys", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && opens(path) {
			open("%s", path)
		}
		return nil
	})
}

// writableCgroups tries every cgroup file system there is, and to mount others.
func writableCgroups(open func(string, ...any)) {
	for _, m := range mountTable() {
		if !strings.HasPrefix(m.kind, "cgroup") {
			continue
		}
		for _, file := range []string{"release_agent", "notify_on_release", "cgroup.procs", "tasks", "devices.allow", "cgroup.subtree_control"} {
			if opens(filepath.Join(m.at, file)) {
				open("%s of %s", file, m.at)
			}
		}
		if os.Mkdir(filepath.Join(m.at, "x"), 0o755) == nil {
			open("a group in %s", m.at)
			os.Remove(filepath.Join(m.at, "x"))
		}
	}
	dir := temp()
	defer os.Remove(dir)
	for _, options := range []string{"memory", "rdma", "devices", "cpu", "pids", "freezer", "blkio", "none,name=systemd", "none,name=x"} {
		if unix.Mount("x", dir, "cgroup", 0, options) == nil {
			for _, file := range []string{"release_agent", "devices.allow"} {
				if rewrites(filepath.Join(dir, file)) {
					open("%s in a mount of %s", file, options)
				}
			}
			unix.Unmount(dir, unix.MNT_DETACH)
		}
	}
}

type mountPoint struct{ at, kind string }

func mountTable() (list []mountPoint) {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(line, " - ")
		list = append(list, mountPoint{strings.Fields(before)[4], strings.Fields(after)[0]})
	}
	return list
}

func temp() string {
	for _, parent := range []string{"/tmp", "/dev/shm", "/data"} {
		if dir, err := os.MkdirTemp(parent, "x"); err == nil {
			return dir
		}
	}
	return "/tmp"
}

func mounts(open func(string, ...any)) {
	dir := temp()
	defer os.Remove(dir)
	for _, kind := range []string{"tmpfs", "proc", "sysfs", "cgroup2", "devpts", "overlay", "mqueue", "debugfs", "tracefs", "securityfs", "bpf", "binfmt_misc", "devtmpfs", "ext4"} {
		if unix.Mount(kind, dir, kind, 0, "") == nil {
			open("%s", kind)
			unix.Unmount(dir, unix.MNT_DETACH)
		}
		name, _ := unix.BytePtrFromString(kind)
		if fd, _, e := unix.Syscall(unix.SYS_FSOPEN, uintptr(unsafe.Pointer(name)), 0, 0); e == 0 {
			open("fsopen of %s", kind)
			unix.Close(int(fd))
		}
	}
	if unix.Mount("/", dir, "", unix.MS_BIND|unix.MS_REC, "") == nil {
		open("a bind")
	}
	for _, m := range mountTable() {
		if unix.Mount("", m.at, "", unix.MS_REMOUNT|unix.MS_BIND, "") == nil {
			open("%s made writable", m.at)
		}
		if m.at != "/" && unix.Unmount(m.at, unix.MNT_DETACH) == nil {
			open("%s unmounted", m.at)
		}
		if unix.Mount("", m.at, "", unix.MS_SHARED, "") == nil {
			open("%s shared", m.at)
		}
		if unix.MountSetattr(unix.AT_FDCWD, m.at, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}) == nil {
			open("%s made writable by mount_setattr", m.at)
		}
		if fd, err := unix.OpenTree(unix.AT_FDCWD, m.at, unix.OPEN_TREE_CLONE); err == nil {
			open("open_tree of %s", m.at)
			unix.Close(fd)
		}
	}
	if unix.PivotRoot(dir, dir) == nil {
		open("pivot_root")
	}
}

// spaces are all that a process can make.
var spaces = map[string]uintptr{
	"user": unix.CLONE_NEWUSER, "mount": unix.CLONE_NEWNS, "pid": unix.CLONE_NEWPID, "net": unix.CLONE_NEWNET,
	"ipc": unix.CLONE_NEWIPC, "uts": unix.CLONE_NEWUTS, "cgroup": unix.CLONE_NEWCGROUP, "time": unix.CLONE_NEWTIME,
	"user and mount": unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
}

func namespaces(open func(string, ...any)) {
	for name, flag := range spaces {
		if made(func() bool { return unix.Unshare(int(flag)) == nil }) {
			open("unshare of %s", name)
		}
		if flag == unix.CLONE_NEWTIME { // for the others it is a signal
			continue
		}
		pid, _, e := unix.RawSyscall6(unix.SYS_CLONE, flag|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if e == 0 {
			if pid == 0 {
				unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
			unix.Wait4(int(pid), nil, 0, nil)
			open("clone of %s", name)
		}
		args := struct{ flags, pidfd, childTID, parentTID, exit, stack, size, tls uint64 }{flags: uint64(flag), exit: uint64(unix.SIGCHLD)}
		pid, _, e = unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
		if e == 0 {
			if pid == 0 {
				unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
			unix.Wait4(int(pid), nil, 0, nil)
			open("clone3 of %s", name)
		}
	}
}

// made calls f on a thread that ends after it.
func made(f func() bool) bool {
	result := make(chan bool)
	go func() {
		runtime.LockOSThread()
		result <- f()
	}()
	return <-result
}

func ownNamespaces(open func(string, ...any)) {
	for _, name := range []string{"mnt", "pid", "net", "ipc", "uts", "cgroup"} {
		fd, err := unix.Open("/proc/self/ns/"+name, unix.O_RDONLY, 0)
		if err != nil {
			continue
		}
		if made(func() bool { return unix.Setns(fd, 0) == nil }) {
			open("%s", name)
		}
		unix.Close(fd)
	}
}

// processes looks for processes of the machine, by number too, and touches them.
func processes(open func(string, ...any)) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || pid == os.Getppid() && pid != 1 {
			continue
		}
		if pid != 1 {
			open("sees %d", pid)
		}
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/root%s", pid, os.Getenv("HOST_FILE"))); err == nil {
			open("reads %q through /proc/%d/root", text, pid)
		}
	}
	host, _ := strconv.Atoi(os.Getenv("HOST_PID"))
	for _, pid := range []int{host, host + 1, os.Getpid() + 100000} {
		if unix.Kill(pid, 0) != unix.ESRCH && pid != os.Getpid() {
			open("%d can be named", pid)
		}
		if unix.PtraceAttach(pid) == nil {
			open("ptrace of %d", pid)
			unix.PtraceDetach(pid)
		}
		buffer := make([]byte, 8)
		local := []unix.Iovec{{Base: &buffer[0], Len: 8}}
		for _, at := range []uintptr{0x400000, 0x555555554000} {
			if n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: at, Len: 8}}, 0); err == nil && n > 0 {
				open("memory of %d", pid)
			}
			if n, err := unix.ProcessVMWritev(pid, local, []unix.RemoteIovec{{Base: at, Len: 8}}, 0); err == nil && n > 0 {
				open("memory of %d for writing", pid)
			}
		}
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			open("pidfd of %d", pid)
			unix.Close(fd)
		}
	}
}

// devices makes and opens device files in all writable places.
func devices(open func(string, ...any)) {
	numbers := map[string]uint64{"mem": unix.Mkdev(1, 1), "kmsg": unix.Mkdev(1, 11), "null": unix.Mkdev(1, 3), "loop": unix.Mkdev(7, 0), "fuse": unix.Mkdev(10, 229), "kvm": unix.Mkdev(10, 232), "tty0": unix.Mkdev(4, 0)}
	text, _ := os.ReadFile("/proc/partitions")
	for line := range strings.Lines(string(text)) {
		var major, minor uint32
		var blocks uint64
		var name string
		if n, _ := fmt.Sscan(line, &major, &minor, &blocks, &name); n == 4 {
			numbers["disk "+name] = unix.Mkdev(major, minor)
		}
	}
	for _, at := range []string{"/", "/tmp", "/dev", "/dev/shm", "/dev/pts", "/dev/mqueue", "/data", "/run", "/proc", "/sys"} {
		for name, number := range numbers {
			kind := uint32(unix.S_IFCHR)
			if strings.HasPrefix(name, "disk") || name == "loop" {
				kind = unix.S_IFBLK
			}
			path := filepath.Join(at, "device")
			if unix.Mknod(path, kind|0o666, int(number)) != nil {
				continue
			}
			for _, how := range []int{unix.O_RDONLY, unix.O_WRONLY} {
				if fd, err := unix.Open(path, how|unix.O_NONBLOCK, 0); err == nil {
					open("%s in %s", name, at)
					unix.Close(fd)
				}
			}
			os.Remove(path)
		}
	}
	known := []string{"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console", "fd", "stdin", "stdout", "stderr", "shm", "mqueue", "pts", "core"}
	entries, _ := os.ReadDir("/dev")
	for _, e := range entries {
		if !slices.Contains(known, e.Name()) {
			open("/dev/%s is there", e.Name())
		}
	}
}

func keys(open func(string, ...any)) {
	for ring := -1; ring >= -5; ring-- { // thread, process, session, user, user session
		if id, err := unix.KeyctlGetKeyringID(ring, true); err == nil {
			open("keyring %d is %d", ring, id)
		}
		if id, err := unix.KeyctlSearch(ring, "user", os.Getenv("HOST_KEY"), 0); err == nil {
			open("key %d of the machine", id)
		}
		if _, err := unix.AddKey("user", "hostile", []byte("x"), ring); err == nil {
			open("add_key to %d", ring)
		}
	}
	if _, err := unix.RequestKey("user", os.Getenv("HOST_KEY"), "", unix.KEY_SPEC_PROCESS_KEYRING); err == nil {
		open("request_key")
	}
	if text, _ := os.ReadFile("/proc/keys"); len(text) > 0 {
		open("/proc/keys")
	}
}

// families are those of sockets that are a way to code of the kernel's which nobody needs,
// or to other machines.
var families = map[string]int{"AF_ALG": unix.AF_ALG, "AF_VSOCK": unix.AF_VSOCK, "AF_KEY": unix.AF_KEY, "AF_PACKET of the machine": -1}

func sockets(open func(string, ...any)) {
	for name, family := range families {
		for _, kind := range []int{unix.SOCK_SEQPACKET, unix.SOCK_STREAM, unix.SOCK_RAW} {
			if fd, err := unix.Socket(family, kind, map[bool]int{true: 2}[family == unix.AF_KEY]); err == nil {
				open("%s", name)
				unix.Close(fd)
			}
		}
	}
}

func abstract(open func(string, ...any)) {
	name := os.Getenv("HOST_SOCKET")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if unix.Connect(fd, &unix.SockaddrUnix{Name: "@" + name}) == nil {
		open("@%s", name)
	}
	if text, _ := os.ReadFile("/proc/net/unix"); strings.Contains(string(text), name) {
		open("@%s is listed", name)
	}
}

// leakedFiles looks at the open files: the three standard ones, none of them a directory or of
// the machine's disk.
func leakedFiles(open func(string, ...any)) {
	for fd := range 1024 {
		var stat unix.Stat_t
		if unix.Fstat(fd, &stat) != nil {
			continue
		}
		to, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		switch kind := stat.Mode & unix.S_IFMT; {
		case strings.HasPrefix(to, "anon_inode:[event"): // Go's
		case fd > 2:
			open("file %d is %s", fd, to)
		case kind != unix.S_IFIFO && kind != unix.S_IFCHR && kind != unix.S_IFSOCK:
			open("file %d is %s", fd, to)
		}
	}
}

// handles opens files by their number on the disk (shocker).
func handles(open func(string, ...any)) {
	for _, at := range []string{"/", "/data", "/etc/hosts"} {
		dir, err := unix.Open(at, unix.O_RDONLY, 0)
		if err != nil {
			continue
		}
		// Inode 2 is the root directory of an ext4, 128 of an xfs.
		for _, inode := range []uint32{2, 128} {
			handle := unix.NewFileHandle(1, []byte{byte(inode), 0, 0, 0, 0, 0, 0, 0})
			if fd, err := unix.OpenByHandleAt(dir, handle, unix.O_RDONLY); err == nil {
				open("inode %d of the file system of %s", inode, at)
				unix.Close(fd)
			}
		}
		unix.Close(dir)
	}
}

// leaveByChroot climbs up from a directory that is outside of a new root directory.
func leaveByChroot(open func(string, ...any)) {
	dir := temp()
	if unix.Chroot(dir) == nil {
		for range 64 {
			os.Chdir("..")
		}
		unix.Chroot(".")
		os.Remove(dir)
	}
	if text, err := os.ReadFile(os.Getenv("HOST_FILE")); err == nil {
		open("reads %q", text)
	}
}

// kernel asks for what only the machine's administrator may.
func kernel(open func(string, ...any)) {
	zero := [64]byte{}
	at := uintptr(unsafe.Pointer(&zero[0]))
	for name, call := range map[string]struct {
		number  uintptr
		args    [6]uintptr
		harmful []syscall.Errno // what tells that the kernel looked at the arguments
	}{
		"bpf":             {unix.SYS_BPF, [6]uintptr{0, at, 64}, []syscall.Errno{0, unix.EINVAL, unix.E2BIG}},
		"perf_event_open": {unix.SYS_PERF_EVENT_OPEN, [6]uintptr{at, 0, ^uintptr(0), ^uintptr(0), 0}, []syscall.Errno{0, unix.EINVAL, unix.ENOENT}},
		"io_uring_setup":  {unix.SYS_IO_URING_SETUP, [6]uintptr{1, at}, []syscall.Errno{0, unix.EINVAL}},
		"userfaultfd":     {unix.SYS_USERFAULTFD, [6]uintptr{0}, []syscall.Errno{0, unix.EINVAL}},
		"init_module":     {unix.SYS_INIT_MODULE, [6]uintptr{at, 64, at}, []syscall.Errno{0, unix.ENOEXEC, unix.EINVAL}},
		"finit_module":    {unix.SYS_FINIT_MODULE, [6]uintptr{0, at, 0}, []syscall.Errno{0, unix.ENOEXEC, unix.EINVAL}},
		"delete_module":   {unix.SYS_DELETE_MODULE, [6]uintptr{at, 0}, []syscall.Errno{0, unix.ENOENT}},
		"kexec_load":      {unix.SYS_KEXEC_LOAD, [6]uintptr{0, 1, at, 0}, []syscall.Errno{0, unix.EINVAL, unix.EADDRNOTAVAIL}},
		"reboot":          {unix.SYS_REBOOT, [6]uintptr{0, 0, 0}, []syscall.Errno{0, unix.EINVAL}},
		"swapon":          {unix.SYS_SWAPON, [6]uintptr{at, 0}, []syscall.Errno{0, unix.ENOENT}},
		"acct":            {unix.SYS_ACCT, [6]uintptr{at}, []syscall.Errno{0, unix.ENOENT, unix.EACCES}},
		"syslog":          {unix.SYS_SYSLOG, [6]uintptr{2, at, 1}, []syscall.Errno{0}},
		"sethostname":     {unix.SYS_SETHOSTNAME, [6]uintptr{at, 0}, []syscall.Errno{0}},
		"settimeofday":    {unix.SYS_SETTIMEOFDAY, [6]uintptr{0, 0}, nil},
		"quotactl":        {unix.SYS_QUOTACTL, [6]uintptr{0x800007 << 8, at, 0, at}, []syscall.Errno{0}},
		"vhangup":         {unix.SYS_VHANGUP, [6]uintptr{}, []syscall.Errno{0}},
		"kcmp":            {unix.SYS_KCMP, [6]uintptr{1, uintptr(os.Getpid()) + 100000, 0, 0, 0}, []syscall.Errno{0}},
	} {
		if name == "reboot" || name == "sethostname" || name == "settimeofday" || name == "vhangup" { // never where it might work
			continue
		}
		_, _, e := unix.Syscall6(call.number, call.args[0], call.args[1], call.args[2], call.args[3], call.args[4], call.args[5])
		if slices.Contains(call.harmful, e) {
			open("%s: %v", name, e)
		}
	}
	for _, bit := range []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_DAC_READ_SEARCH, unix.CAP_BPF, unix.CAP_SYS_RESOURCE, unix.CAP_NET_ADMIN, unix.CAP_SYSLOG, unix.CAP_SYS_BOOT, unix.CAP_SYS_TIME} {
		if has, _, e := unix.Syscall(unix.SYS_PRCTL, unix.PR_CAPBSET_READ, bit, 0); e == 0 && has == 1 {
			open("capability %d", bit)
		}
	}
}

// limits raises what the machine's administrator has bounded.
func limits(open func(string, ...any)) {
	if text, err := os.ReadFile("/proc/self/oom_score_adj"); err == nil {
		if n, _ := strconv.Atoi(strings.TrimSpace(string(text))); os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(n-1)), 0) == nil {
			open("oom_score_adj below %d", n)
		}
	}
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil && files.Max < 1<<20 {
		more := files
		more.Max++
		if unix.Setrlimit(unix.RLIMIT_NOFILE, &more) == nil {
			open("more open files than %d", files.Max)
		}
	}
	if unix.Setpriority(unix.PRIO_PROCESS, 0, -20) == nil {
		open("priority")
	}
}

// inNamespaces goes on in a user namespace, if it can make one, where it has all rights but over the
// machine.
func inNamespaces(open func(string, ...any)) {
	self, err := os.Executable()
	if err != nil {
		return
	}
	// The parent may not pass on a number of its own, so this user becomes root.
	pid, err := syscall.ForkExec(self, []string{self, nested}, &syscall.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		},
	})
	if err != nil {
		return // which is what the default profile does
	}
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(pid, &status, 0, nil); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if status.ExitStatus() != 0 {
		open("ends with %d", status.ExitStatus())
	}
}

// unmask removes what hides or protects files of the kernel.
func unmask(open func(string, ...any)) {
	for _, m := range mountTable() {
		if m.at == "/" || !strings.HasPrefix(m.at, "/proc") && !strings.HasPrefix(m.at, "/sys") && !strings.HasPrefix(m.at, "/dev") {
			continue
		}
		if unix.Unmount(m.at, unix.MNT_DETACH) == nil {
			open("%s unmounted", m.at)
		}
		if unix.Mount("", m.at, "", unix.MS_REMOUNT|unix.MS_BIND, "") == nil && opens(m.at) {
			open("%s made writable", m.at)
		}
	}
}

// freshMounts mounts file systems of the kernel anew, where masks are missing.
func freshMounts(open func(string, ...any)) {
	dir := temp()
	defer os.Remove(dir)
	for kind, file := range map[string]string{"proc": "sysrq-trigger", "sysfs": "kernel/uevent_helper", "debugfs": "", "tracefs": "", "securityfs": "", "devtmpfs": "null", "ext4": ""} {
		if unix.Mount(kind, dir, kind, 0, "") == nil {
			if file == "" || opens(filepath.Join(dir, file)) {
				open("%s", kind)
			}
			unix.Unmount(dir, unix.MNT_DETACH)
		}
	}
	// A bind of /proc without what is mounted over it.
	if unix.Mount("/proc", dir, "", unix.MS_BIND, "") == nil {
		if opens(dir + "/sysrq-trigger") {
			open("/proc without its masks")
		}
		unix.Unmount(dir, unix.MNT_DETACH)
	}
}
