// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/rootless"
	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
)

// The test binary is also the child that a program is for: the first variable has it,
// with its flags, and the other one says what to do under it.
const (
	programEnv = "DIWAN_SECCOMP_TEST_PROGRAM"
	modeEnv    = "DIWAN_SECCOMP_TEST_MODE"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeEnv); mode != "" {
		if err := child(mode); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(99)
		}
		return
	}
	os.Exit(m.Run())
}

// child installs the program, if there is one, and does what the mode says.
func child(mode string) error {
	if text := os.Getenv(programEnv); text != "" {
		if err := install(text); err != nil {
			return err
		}
	}
	switch mode {
	case "try":
		return json.NewEncoder(os.Stdout).Encode(tryAll())
	case "work":
		return work()
	default:
		os.Unsetenv(modeEnv)
		return fmt.Errorf("cannot execute %s: %w", os.Args[1], syscall.Exec(os.Args[1], os.Args[1:], os.Environ()))
	}
}

// install gives all threads of this process a program, as the parent's bytes have it.
func install(text string) error {
	number, program, _ := strings.Cut(text, ":")
	flags, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return err
	}
	code, err := hex.DecodeString(program)
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot set no_new_privs: %w", err)
	}
	prog := unix.SockFprog{Len: uint16(len(code) / instructionSize), Filter: (*unix.SockFilter)(unsafe.Pointer(&code[0]))}
	thread, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, uintptr(flags)|unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if e != 0 || thread != 0 {
		return fmt.Errorf("cannot install the program: %w, thread %d", e, thread)
	}
	return nil
}

// attempt is a syscall without an effect: where it is let through, the kernel refuses
// its arguments, or does nothing.
type attempt struct {
	name   string
	number uintptr
	args   [6]uintptr
	want   syscall.Errno // under the default profile
	let    bool          // it lets the syscall through
}

// missing is the number of a syscall that no kernel has yet.
const missing = 1000

func attempts() []attempt {
	text := func(s string) uintptr { return uintptr(unsafe.Pointer(&append([]byte(s), 0)[0])) }
	const nobody = 1<<22 - 1 // the largest pid
	return []attempt{
		{name: "fsopen", number: unix.SYS_FSOPEN, args: [6]uintptr{text("none")}, want: unix.EPERM},
		{name: "fspick", number: unix.SYS_FSPICK, args: [6]uintptr{0, text("/none")}, want: unix.EPERM},
		{name: "open_tree", number: unix.SYS_OPEN_TREE, args: [6]uintptr{0, text("/none")}, want: unix.EPERM},
		{name: "mount", number: unix.SYS_MOUNT, args: [6]uintptr{text("none"), text("/none"), text("none")}, want: unix.EPERM},
		{name: "umount2", number: unix.SYS_UMOUNT2, args: [6]uintptr{text("/none")}, want: unix.EPERM},
		{name: "pivot_root", number: unix.SYS_PIVOT_ROOT, args: [6]uintptr{text("/none"), text("/none")}, want: unix.EPERM},
		{name: "io_uring_setup", number: unix.SYS_IO_URING_SETUP, want: unix.EPERM},
		{name: "io_uring_enter", number: unix.SYS_IO_URING_ENTER, args: [6]uintptr{missing}, want: unix.EPERM},
		{name: "bpf", number: unix.SYS_BPF, args: [6]uintptr{missing}, want: unix.EPERM},
		{name: "perf_event_open", number: unix.SYS_PERF_EVENT_OPEN, want: unix.EPERM},
		{name: "userfaultfd", number: unix.SYS_USERFAULTFD, args: [6]uintptr{missing}, want: unix.EPERM},
		{name: "keyctl", number: unix.SYS_KEYCTL, args: [6]uintptr{missing}, want: unix.EPERM},
		{name: "add_key", number: unix.SYS_ADD_KEY, want: unix.EPERM},
		{name: "request_key", number: unix.SYS_REQUEST_KEY, want: unix.EPERM},
		{name: "socket of AF_ALG", number: unix.SYS_SOCKET, args: [6]uintptr{unix.AF_ALG, unix.SOCK_SEQPACKET, missing}, want: unix.EPERM},
		{name: "socket of AF_VSOCK", number: unix.SYS_SOCKET, args: [6]uintptr{unix.AF_VSOCK, missing}, want: unix.EPERM},
		{name: "unshare of users", number: unix.SYS_UNSHARE, args: [6]uintptr{unix.CLONE_NEWUSER | 1<<40}, want: unix.EPERM},
		{name: "setns", number: unix.SYS_SETNS, args: [6]uintptr{missing}, want: unix.EPERM},
		{name: "clone of users", number: unix.SYS_CLONE, args: [6]uintptr{unix.CLONE_NEWUSER | unix.CLONE_FS}, want: unix.EPERM},
		{name: "clone3", number: unix.SYS_CLONE3, want: unix.ENOSYS},
		{name: "open_by_handle_at", number: unix.SYS_OPEN_BY_HANDLE_AT, args: [6]uintptr{missing}, want: unix.EPERM},
		{name: "finit_module", number: unix.SYS_FINIT_MODULE, args: [6]uintptr{missing}, want: unix.EPERM},
		{name: "kexec_load", number: unix.SYS_KEXEC_LOAD, args: [6]uintptr{0, missing}, want: unix.EPERM},
		{name: "reboot", number: unix.SYS_REBOOT, want: unix.EPERM},
		{name: "personality of READ_IMPLIES_EXEC", number: unix.SYS_PERSONALITY, args: [6]uintptr{0x400000}, want: unix.EPERM},
		{name: "a new syscall", number: missing, want: unix.ENOSYS, let: true},
		{name: "x32", number: x32Bit | unix.SYS_GETPID, want: unix.ENOSYS, let: true},
		{name: "ptrace", number: unix.SYS_PTRACE, args: [6]uintptr{unix.PTRACE_ATTACH, nobody}, want: unix.ESRCH, let: true},
		{name: "getppid", number: unix.SYS_GETPPID, let: true},
		{name: "personality", number: unix.SYS_PERSONALITY, args: [6]uintptr{0xffffffff}, let: true},
		{name: "socket of AF_UNIX", number: unix.SYS_SOCKET, args: [6]uintptr{unix.AF_UNIX, unix.SOCK_STREAM}, let: true},
		{name: "socket of AF_INET", number: unix.SYS_SOCKET, args: [6]uintptr{unix.AF_INET, unix.SOCK_STREAM}, let: true},
		{name: "chroot", number: unix.SYS_CHROOT, args: [6]uintptr{text("/none")}, want: unix.ENOENT, let: true},
		{name: "seccomp", number: unix.SYS_SECCOMP, args: [6]uintptr{missing}, want: unix.EINVAL, let: true},
		{name: "io_setup", number: unix.SYS_IO_SETUP, want: unix.EFAULT, let: true},
	}
}

// tryAll makes the syscalls and returns what they say.
func tryAll() map[string]syscall.Errno {
	got := map[string]syscall.Errno{}
	for _, a := range attempts() {
		_, _, got[a.name] = unix.RawSyscall6(a.number, a.args[0], a.args[1], a.args[2], a.args[3], a.args[4], a.args[5])
	}
	return got
}

// needSeccomp skips a test where the kernel has no seccomp, which CI's has.
func needSeccomp(t testing.TB) {
	t.Helper()
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	switch {
	case e != 0 && os.Getenv("CI") == "true":
		t.Fatal("seccomp is not available: ", e)
	case e != 0:
		t.Skip("seccomp is not available: ", e)
	}
}

// asChild is this test binary as a child under a program, nil for none.
func asChild(p *Program, mode string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), childEnv(p, mode)...)
	return cmd
}

func childEnv(p *Program, mode string) []string {
	env := []string{modeEnv + "=" + mode}
	if p != nil {
		env = append(env, fmt.Sprintf("%s=%d:%x", programEnv, p.Flags, p.Bytes()))
	}
	return env
}

// defaultProgram is that of a container here.
func defaultProgram(t testing.TB) *Program {
	t.Helper()
	needSeccomp(t)
	m, err := ThisMachine(usual)
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := Select(nil, "", m)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// try has a child make the attempts.
func try(t *testing.T, cmd *exec.Cmd) (got map[string]syscall.Errno) {
	t.Helper()
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &got)
	}
	if err != nil {
		t.Fatalf("%v: %s%s", err, out, &problems)
	}
	return got
}

// TestKernel makes syscalls under the default profile, and without it: what the profile
// denies, the kernel would answer otherwise.
func TestKernel(t *testing.T) {
	t.Parallel()
	p := defaultProgram(t)
	bare, filtered := try(t, asChild(nil, "try")), try(t, asChild(p, "try"))
	for _, a := range attempts() {
		if filtered[a.name] != a.want {
			t.Errorf("%s gets %d (%v), want %d (%v)", a.name, filtered[a.name], filtered[a.name], a.want, a.want)
		}
		// An ordinary user gets EPERM from the kernel for some.
		if same := bare[a.name] == filtered[a.name]; !a.let && same && rootless.Root() {
			t.Errorf("%s gets %v without the program, too", a.name, bare[a.name])
		} else if a.let && !same {
			t.Errorf("%s gets %v without the program", a.name, bare[a.name])
		}
	}
}

// TestKernelForUsers does the same as an ordinary user, who may install a program, too.
func TestKernelForUsers(t *testing.T) {
	t.Parallel()
	p := defaultProgram(t)
	if !rootless.Root() {
		t.Skip("only root can become another user; TestKernel has run as one")
	}
	cmd := rootlesstest.Command(t, rootlesstest.Home(t), os.Args[0])
	cmd.Env = append(cmd.Env, childEnv(p, "try")...)
	got := try(t, cmd)
	for _, a := range attempts() {
		if got[a.name] != a.want {
			t.Errorf("%s gets %v, want %v", a.name, got[a.name], a.want)
		}
	}
}

// TestCapabilities lets a container do what its capabilities are for.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	needSeccomp(t)
	m, err := ThisMachine([]string{"CAP_SYS_ADMIN"})
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := Select(nil, "", m)
	if err != nil {
		t.Fatal(err)
	}
	bare, filtered := try(t, asChild(nil, "try")), try(t, asChild(p, "try"))
	for _, name := range []string{"fsopen", "mount", "bpf", "setns", "unshare of users", "clone of users", "clone3"} {
		if filtered[name] != bare[name] {
			t.Errorf("%s gets %v, and %v without the program", name, filtered[name], bare[name])
		}
	}
	for _, name := range []string{"io_uring_setup", "keyctl", "socket of AF_ALG", "kexec_load"} {
		if filtered[name] != unix.EPERM {
			t.Errorf("%s gets %v, want EPERM", name, filtered[name])
		}
	}
}

// work uses what Go programs use: threads, timers, the network, files, children.
func work() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	var group sync.WaitGroup
	errs := make([]error, 8)
	group.Go(func() {
		for range errs {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Write([]byte("hello"))
			conn.Close()
		}
	})
	for i := range errs {
		group.Go(func() {
			runtime.LockOSThread() // each a thread of its own
			errs[i] = func() error {
				conn, err := net.Dial("tcp", listener.Addr().String())
				if err != nil {
					return err
				}
				defer conn.Close()
				if err := exec.Command("/bin/true").Run(); err != nil {
					return err
				}
				_, err = os.ReadFile("/proc/self/status")
				return err
			}()
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err = fmt.Println("worked")
	return err
}

// TestPrograms runs usual programs under the default profile.
func TestPrograms(t *testing.T) {
	t.Parallel()
	p := defaultProgram(t)
	const python = `
import asyncio, multiprocessing, os, socket, subprocess, sys, tempfile, threading
done = []
threads = [threading.Thread(target=lambda: done.append(1)) for _ in range(8)]
[x.start() for x in threads]; [x.join() for x in threads]
a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
with tempfile.NamedTemporaryFile() as f: f.write(b"x"); os.fsync(f.fileno())
pid = os.fork()
if pid == 0: os._exit(7)
assert os.waitpid(pid, 0)[1] == 7 << 8
out = subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, text=True).stdout
async def nap(): await asyncio.sleep(0); return 1
print(len(done), out.strip(), asyncio.run(nap()), multiprocessing.cpu_count() > 0)
`
	for _, tt := range []struct {
		reason string
		mode   string
		args   []string
		want   string
	}{
		{"nothing", "exec", []string{"/bin/true"}, ""},
		{"a shell with children and a pipe", "exec", []string{"/bin/sh", "-c", "for i in 1 2 3; do (echo $i) & done | sort | tr '\\n' ' '; grep Seccomp: /proc/self/status"}, "1 2 3 Seccomp:\t2\n"},
		{"a Go program", "work", nil, "worked\n"},
		{"Python", "exec", []string{"/usr/bin/python3", "-c", python}, "8 1 1 True\n"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			if len(tt.args) > 0 {
				if _, err := os.Stat(tt.args[0]); err != nil {
					t.Skip(err)
				}
			}
			var problems bytes.Buffer
			cmd := asChild(p, tt.mode, tt.args...)
			cmd.Stderr = &problems
			if out, err := cmd.Output(); err != nil || string(out) != tt.want {
				t.Errorf("got %q, %v, want %q\n%s", out, err, tt.want, &problems)
			}
		})
	}
}

// TestOldArchitecture executes programs of the architecture before amd64, which return
// what a syscall says as their exit code.
func TestOldArchitecture(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skip("the programs are for amd64's predecessor")
	}
	p := defaultProgram(t)
	run := func(t *testing.T, p *Program, number uint32, args ...uint32) (code int, signal syscall.Signal) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "program")
		// A child that is forked meanwhile would have the file open too: then nobody can run it.
		syscall.ForkLock.RLock()
		err := os.WriteFile(path, program386(number, args...), 0o755)
		syscall.ForkLock.RUnlock()
		if err != nil {
			t.Fatal(err)
		}
		var problems bytes.Buffer
		cmd := asChild(p, "exec", path)
		cmd.Stderr = &problems
		cmd.Run()
		if problems.Len() > 0 {
			t.Fatal(problems.String())
		}
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if status.Signaled() {
			return 0, status.Signal()
		}
		return status.ExitStatus(), 0
	}
	const getuid, exit, socket, fsopen, clone3, personality = 199, 1, 359, 430, 435, 136
	if _, err := os.Stat("/proc/sys/abi/vsyscall32"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("the kernel does not run programs of 32 bits: ", err)
		}
		t.Skip("the kernel does not run programs of 32 bits: ", err)
	}
	for _, tt := range []struct {
		reason string
		number uint32
		args   []uint32
		want   int
	}{
		{"its own exit", exit, []uint32{3}, 3},
		{"an allowed syscall", personality, []uint32{0xffffffff}, 0},
		{"a denied one", fsopen, nil, int(unix.EPERM)},
		{"one that answers otherwise", clone3, nil, int(unix.ENOSYS)},
		{"an allowed argument", socket, []uint32{unix.AF_UNIX, missing}, int(unix.EINVAL)},
		{"a denied one", socket, []uint32{unix.AF_ALG, missing}, int(unix.EPERM)},
		{"a denied personality", personality, []uint32{0x400000}, int(unix.EPERM)},
		{"a new syscall", missing, nil, int(unix.ENOSYS)},
	} {
		if got, signal := run(t, p, tt.number, tt.args...); got != tt.want || signal != 0 {
			t.Errorf("%s: got %d, %v, want %d", tt.reason, got, signal, tt.want)
		}
	}
	m, err := ThisMachine(nil)
	if err != nil {
		t.Fatal(err)
	}
	own, err := Compile(&specs.LinuxSeccomp{DefaultAction: specs.ActAllow}, m)
	if err != nil {
		t.Fatal(err)
	}
	if code, signal := run(t, own, getuid); signal != syscall.SIGSYS {
		t.Errorf("an architecture that the profile does not have: got %d, %v, want %v", code, signal, syscall.SIGSYS)
	}
}

// program386 is an executable of 386 that makes one syscall and exits with its error.
func program386(number uint32, args ...uint32) []byte {
	var code []byte
	set := func(register int, value uint32) { // mov
		code = append(code, 0xb8+byte(register), byte(value), byte(value>>8), byte(value>>16), byte(value>>24))
	}
	for i, value := range append(args, make([]uint32, 3)...)[:3] {
		set([]int{3, 1, 2}[i], value) // ebx, ecx, edx
	}
	set(0, number)
	code = append(code, 0xcd, 0x80, 0xf7, 0xd8, 0x89, 0xc3) // int 0x80; neg eax; mov ebx, eax
	set(0, 1)                                               // exit
	code = append(code, 0xcd, 0x80)
	const base, headers = 0x10000, 52 + 32
	words := func(values ...uint32) (text []byte) {
		for _, v := range values {
			text = append(text, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
		}
		return text
	}
	size := headers + uint32(len(code))
	file := append([]byte{0x7f, 'E', 'L', 'F', 1, 1, 1, 15: 0}, 2, 0, 3, 0)   // 32 bits, executable, 386
	file = append(file, words(1, base+headers, 52, 0, 0, 52|32<<16, 1, 0)...) // its start, and one segment
	file = append(file, words(1, 0, base, base, size, size, 5, 0x1000)...)    // the file itself, to read and execute
	return append(file, code...)
}

// BenchmarkSyscall compares syscalls under the default profile with bare ones, in turn,
// and reports the ratio of the fastest batches: getppid, which a kernel since 5.11 lets
// through without running the program, and a socket of a type that there is not, whose
// arguments the program sees each time.
func BenchmarkSyscall(b *testing.B) {
	p := defaultProgram(b)
	for _, bb := range []struct {
		name string
		call func()
	}{
		{"getppid", func() { unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0) }},
		{"socket", func() { unix.RawSyscall(unix.SYS_SOCKET, unix.AF_UNIX, missing, 0) }},
	} {
		b.Run(bb.name, func(b *testing.B) {
			const batch = 2000
			bare, stopBare := inThread(b, nil, batch, bb.call)
			defer stopBare()
			filtered, stopFiltered := inThread(b, p, batch, bb.call)
			defer stopFiltered()
			least := [2]time.Duration{time.Hour, time.Hour}
			for b.Loop() {
				least[0], least[1] = min(least[0], bare()), min(least[1], filtered())
			}
			b.ReportMetric(float64(least[0].Nanoseconds())/batch, "ns/bare")
			b.ReportMetric(float64(least[1].Nanoseconds())/batch, "ns/filtered")
			b.ReportMetric(float64(least[1])/float64(least[0]), "filtered/bare")
		})
	}
}

// BenchmarkCompile measures what a start of a container pays.
func BenchmarkCompile(b *testing.B) {
	m, err := ThisMachine(usual)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, err := Select(nil, "", m); err != nil {
			b.Fatal(err)
		}
	}
}

// inThread starts a thread under a program, nil for none. measure has it make a batch of
// calls and returns how long they took; stop ends it.
func inThread(t testing.TB, p *Program, batch int, call func()) (measure func() time.Duration, stop func()) {
	t.Helper()
	started, begin, took := make(chan error), make(chan struct{}), make(chan time.Duration)
	go func() {
		defer close(took)
		runtime.LockOSThread() // until its end
		if p != nil {
			filter := p.SockFilter()
			prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
			err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
			if err == nil {
				err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
			}
			started <- err
		}
		for range begin {
			start := time.Now()
			for range batch {
				call()
			}
			took <- time.Since(start)
		}
	}()
	if p != nil {
		if err := <-started; err != nil {
			t.Fatal(err)
		}
	}
	measure = func() time.Duration {
		begin <- struct{}{}
		return <-took
	}
	stop = func() {
		close(begin)
		<-took
	}
	return measure, stop
}
