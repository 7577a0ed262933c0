// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"encoding/json"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// usual are the capabilities of a container that asks for none.
var usual = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID", "CAP_SETUID",
	"CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE",
}

// resolveDefault returns the default profile's rules.
func resolveDefault(t testing.TB, m Machine) *specs.LinuxSeccomp {
	t.Helper()
	p, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.validate(); err != nil {
		t.Fatal(err)
	}
	rules, err := p.Resolve(m)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// TestDefaultByName holds the default profile to what is known of it.
func TestDefaultByName(t *testing.T) {
	t.Parallel()
	const (
		denied  = errno | eperm
		unknown = errno | enosys
	)
	admin := append(slices.Clone(usual), "CAP_SYS_ADMIN")
	for _, tt := range []struct {
		name         string
		args         [arguments]uint64
		capabilities []string
		want         answer
	}{
		{"read", [arguments]uint64{}, usual, allow},
		{"execve", [arguments]uint64{}, usual, allow},
		{"futex_waitv", [arguments]uint64{}, usual, allow},
		{"landlock_restrict_self", [arguments]uint64{}, usual, allow},
		{"fsopen", [arguments]uint64{}, usual, denied},
		{"fsopen", [arguments]uint64{}, admin, allow},
		{"mount", [arguments]uint64{}, usual, denied},
		{"mount", [arguments]uint64{}, admin, allow},
		{"move_mount", [arguments]uint64{}, usual, denied},
		{"umount2", [arguments]uint64{}, usual, denied},
		{"pivot_root", [arguments]uint64{}, admin, denied},
		{"io_uring_setup", [arguments]uint64{}, admin, denied},
		{"io_uring_enter", [arguments]uint64{}, usual, denied},
		{"bpf", [arguments]uint64{}, usual, denied},
		{"bpf", [arguments]uint64{}, []string{"CAP_BPF"}, allow},
		{"userfaultfd", [arguments]uint64{}, admin, denied},
		{"keyctl", [arguments]uint64{}, admin, denied},
		{"add_key", [arguments]uint64{}, admin, denied},
		{"request_key", [arguments]uint64{}, admin, denied},
		{"kexec_load", [arguments]uint64{}, admin, denied},
		{"init_module", [arguments]uint64{}, usual, denied},
		{"finit_module", [arguments]uint64{}, []string{"CAP_SYS_MODULE"}, allow},
		{"open_by_handle_at", [arguments]uint64{}, usual, denied},
		{"open_by_handle_at", [arguments]uint64{}, []string{"CAP_DAC_READ_SEARCH"}, allow},
		{"setns", [arguments]uint64{}, usual, denied},
		{"unshare", [arguments]uint64{unix.CLONE_NEWUSER}, usual, denied},
		{"unshare", [arguments]uint64{unix.CLONE_FILES}, usual, denied},
		{"unshare", [arguments]uint64{unix.CLONE_NEWUSER}, admin, allow},
		{"clone", [arguments]uint64{unix.CLONE_VM | unix.CLONE_THREAD}, usual, allow},
		{"clone", [arguments]uint64{unix.CLONE_NEWUSER}, usual, denied},
		{"clone", [arguments]uint64{unix.CLONE_VM | unix.CLONE_NEWNS}, usual, denied},
		{"clone", [arguments]uint64{unix.CLONE_NEWUSER}, admin, allow},
		{"clone3", [arguments]uint64{}, usual, unknown},
		{"clone3", [arguments]uint64{}, admin, allow},
		{"socket", [arguments]uint64{unix.AF_INET}, usual, allow},
		{"socket", [arguments]uint64{unix.AF_UNIX}, usual, allow},
		{"socket", [arguments]uint64{unix.AF_NETLINK}, usual, allow},
		{"socket", [arguments]uint64{unix.AF_ALG}, admin, denied},
		{"socket", [arguments]uint64{unix.AF_VSOCK}, usual, denied},
		{"socket", [arguments]uint64{math.MaxUint32}, usual, denied},
		{"socketcall", [arguments]uint64{1}, admin, denied}, // SYS_SOCKET
		{"socketcall", [arguments]uint64{3}, usual, allow},  // SYS_CONNECT
		{"personality", [arguments]uint64{0}, usual, allow},
		{"personality", [arguments]uint64{math.MaxUint32}, usual, allow},
		{"personality", [arguments]uint64{0x20008}, usual, allow},
		{"personality", [arguments]uint64{0x40000}, usual, denied}, // ADDR_NO_RANDOMIZE
		{"ptrace", [arguments]uint64{}, usual, allow},
		{"process_vm_readv", [arguments]uint64{}, usual, allow},
		{"chroot", [arguments]uint64{}, usual, allow},
		{"chroot", [arguments]uint64{}, nil, denied},
		{"set_tls", [arguments]uint64{}, nil, allow}, // of ARM alone
		{"cacheflush", [arguments]uint64{}, nil, allow},
		{"usr26", [arguments]uint64{}, nil, unknown},
		{"arch_prctl", [arguments]uint64{}, nil, allow},
		{"file_getattr", [arguments]uint64{}, usual, unknown}, // newer than the profile
	} {
		for _, m := range machines {
			m.Capabilities = tt.capabilities
			v := mustCompile(t, resolveDefault(t, m), m)
			for _, a := range audits(m)[:2] {
				n, ok := a.number(tt.name)
				if !ok {
					continue
				}
				if got := v.run(t, data{audit: a.audit, number: n, args: tt.args}); got != tt.want {
					t.Errorf("%s: %s(%#x) with %q gets %#x, want %#x", a.name, tt.name, tt.args[0], tt.capabilities, got, tt.want)
				}
			}
		}
	}
}

// TestDefaultIsItsModel tries every syscall of every architecture, by numbers that do
// and do not exist, with arguments that meet conditions of the profile and with others.
func TestDefaultIsItsModel(t *testing.T) {
	t.Parallel()
	sets := map[string][]string{"none": nil, "usual": usual, "all": {}}
	source, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range source.source.Syscalls {
		if call.Includes != nil {
			sets["all"] = append(sets["all"], call.Includes.Caps...)
			for _, c := range call.Includes.Caps {
				sets[c] = []string{c}
			}
		}
	}
	for _, m := range machines {
		for _, kernel := range []Kernel{{4, 4}, {6, 18}} {
			for set, capabilities := range sets {
				m.Kernel, m.Capabilities = kernel, capabilities
				t.Run(m.Arch+"/"+set, func(t *testing.T) {
					t.Parallel()
					everySyscall(t, m)
				})
			}
		}
	}
}

func everySyscall(t *testing.T, m Machine) {
	profile := resolveDefault(t, m)
	v, model := mustCompile(t, profile, m), newModel(profile, m.Arch)
	tried := map[uint64]bool{0: true, math.MaxUint64: true}
	for _, call := range profile.Syscalls {
		for _, arg := range call.Args {
			for _, near := range []uint64{arg.Value - 1, arg.Value, arg.Value + 1, arg.Value | 1<<32, arg.Value ^ 1<<63, arg.Value &^ (1 << 25), arg.Value & (1 << 28)} {
				tried[near] = true
			}
		}
	}
	args := slices.Sorted(maps.Keys(tried))
	answers := map[answer]int{}
	for _, a := range audits(m) {
		for _, n := range numbers() {
			some := args[:1]
			if slices.ContainsFunc(model.rules[a][n], func(call specs.LinuxSyscall) bool { return len(call.Args) > 0 }) {
				some = args
			}
			for _, arg := range some {
				d := data{audit: a.audit, number: n, args: [arguments]uint64{arg, arg, arg, arg, arg, arg}}
				got := v.run(t, d)
				if want := model.run(d); got != want {
					t.Fatalf("syscall %d of %s with %#x: got %#x, want %#x", n, a.name, arg, got, want)
				}
				answers[got]++
			}
		}
	}
	if len(answers) != 4 {
		t.Errorf("answers %#x, want allow, EPERM, ENOSYS and kill", answers)
	}
}

// TestDefaultNames lists the syscalls of the default profile without a number here: those
// of other architectures. A name that x/sys learns later must leave the list.
func TestDefaultNames(t *testing.T) {
	t.Parallel()
	source, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, call := range source.source.Syscalls {
		for _, name := range call.Names {
			if !slices.ContainsFunc(syscalls[:], func(s syscallNumbers) bool { return s.name == name }) {
				missing = append(missing, name)
			}
		}
	}
	slices.Sort(missing)
	want := "riscv_flush_icache riscv_hwprobe s390_pci_mmio_read s390_pci_mmio_write s390_runtime_instr swapcontext sync_file_range2"
	if diff := cmp.Diff(want, strings.Join(slices.Compact(missing), " ")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDefaultSize keeps the program that almost all containers get short.
func TestDefaultSize(t *testing.T) {
	t.Parallel()
	for _, m := range machines {
		m.Capabilities = usual
		p, err := Compile(resolveDefault(t, m), m)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d instructions", m.Arch, p.Len())
		if p.Len() > 400 {
			t.Errorf("%s: %d instructions, want 400 at most", m.Arch, p.Len())
		}
		if got, want := len(p.Bytes()), 8*p.Len(); got != want {
			t.Errorf("%s: %d bytes, want %d", m.Arch, got, want)
		}
	}
}

// TestSelectDefault gives containers that ask for nothing the default profile.
func TestSelectDefault(t *testing.T) {
	t.Parallel()
	m, err := ThisMachine(usual)
	if err != nil {
		t.Fatal(err)
	}
	if m.Arch != runtime.GOARCH || m.Kernel.Major < 3 {
		t.Errorf("this machine is %+v", m)
	}
	none, _, err := Select(nil, "", m)
	if err != nil {
		t.Fatal(err)
	}
	asked, ignored, err := Select(&corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}, "", m)
	if err != nil || len(ignored) > 0 {
		t.Fatal(err, ignored)
	}
	if diff := cmp.Diff(none.Bytes(), asked.Bytes()); diff != "" {
		t.Errorf("asked for nothing and for RuntimeDefault (-nothing +asked):\n%s", diff)
	}
}

// TestConstants holds the numbers of this package to the kernel's.
func TestConstants(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		got, want uint32
	}{
		{"amd64", amd64.audit, unix.AUDIT_ARCH_X86_64},
		{"386", i386.audit, unix.AUDIT_ARCH_I386},
		{"arm64", arm64.audit, unix.AUDIT_ARCH_AARCH64},
		{"arm", arm.audit, unix.AUDIT_ARCH_ARM},
		{"kill process", uint32(killProcess), unix.SECCOMP_RET_KILL_PROCESS},
		{"kill thread", uint32(killThread), unix.SECCOMP_RET_KILL_THREAD},
		{"trap", uint32(trap), unix.SECCOMP_RET_TRAP},
		{"errno", uint32(errno), unix.SECCOMP_RET_ERRNO},
		{"trace", uint32(trace), unix.SECCOMP_RET_TRACE},
		{"log", uint32(log), unix.SECCOMP_RET_LOG},
		{"allow", uint32(allow), unix.SECCOMP_RET_ALLOW},
		{"the kind of an answer", uint32(kindMask), unix.SECCOMP_RET_ACTION_FULL},
		{"EPERM", eperm, uint32(unix.EPERM)},
		{"ENOSYS", enosys, uint32(unix.ENOSYS)},
		{"the flag for logs", flagLog, unix.SECCOMP_FILTER_FLAG_LOG},
		{"the flag for speculation", flagSpecAllow, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW},
	} {
		if tt.got != tt.want {
			t.Errorf("%s is %#x, want %#x", tt.name, tt.got, tt.want)
		}
	}
	own, err := native(runtime.GOARCH)
	if err != nil {
		t.Skip(err)
	}
	for name, want := range map[string]uint32{"read": unix.SYS_READ, "socket": unix.SYS_SOCKET, "clone3": unix.SYS_CLONE3, "fsopen": unix.SYS_FSOPEN, "seccomp": unix.SYS_SECCOMP} {
		if got, ok := own.number(name); !ok || got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
}

// TestKernelAccepts has the kernel check random programs: as filters of a socket, for
// seccomp's could not be removed.
func TestKernelAccepts(t *testing.T) {
	t.Parallel()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	rapid.Check(t, func(rt *rapid.T) {
		p, err := Compile(profiles().Draw(rt, "profile"), rapid.SampledFrom(machines).Draw(rt, "machine"))
		if err != nil {
			rt.Fatal(err)
		}
		filter := p.SockFilter()
		if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}); err != nil {
			rt.Fatal(err)
		}
	})
}

// TestDefaultAsFile reads Docker's file of the default profile, and finds the same rules.
func TestDefaultAsFile(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(seccomp.DefaultProfile())
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse(text)
	if err != nil || len(p.Ignored) > 0 {
		t.Fatal(err, p)
	}
	for _, m := range machines {
		m.Capabilities = usual
		rules, err := p.Resolve(m)
		if err != nil {
			t.Fatal(err)
		}
		inCode, err := usualProfile().Resolve(m)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(inCode, rules); diff != "" {
			t.Errorf("%s (-as code +as file):\n%s", m.Arch, diff)
		}
	}
}
