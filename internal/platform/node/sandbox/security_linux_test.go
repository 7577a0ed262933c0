// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/capability"
	"diwan.dev/diwan/internal/platform/node/cgroup"
	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/rootless"
)

// TestEscapes tries what containers have escaped by. Each line of the output is an attempt;
// "open" is a hole.
func TestEscapes(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	for name, tc := range map[string]struct {
		reason string
		script string
		want   string
	}{
		"sysctl":    {"parameters of the kernel are read-only", `for f in kernel/core_pattern kernel/modprobe kernel/hostname vm/overcommit_memory fs/suid_dumpable; do echo x 2>/dev/null >/proc/sys/$f && echo open $f; done`, ""},
		"sysrq":     {"so is its emergency brake", `echo h 2>/dev/null >/proc/sysrq-trigger && echo open`, ""},
		"sys":       {"/sys is read-only", `for f in /sys/kernel/uevent_helper /sys/kernel/mm/ksm/run /sys/fs/cgroup/cgroup.procs; do echo x 2>/dev/null >$f && echo open $f; done; mkdir /sys/fs/cgroup/x 2>/dev/null && echo open`, ""},
		"masks":     {"some files show nothing", `cat /proc/kcore /proc/keys /proc/timer_list /proc/interrupts 2>/dev/null; ls /proc/acpi /proc/scsi /sys/firmware 2>/dev/null | grep -v : | grep .`, ""},
		"mount":     {"nothing can be mounted", `mount -t tmpfs x /tmp 2>/dev/null && echo open; mount -o bind /etc /tmp 2>/dev/null && echo open; mount -o remount,rw /proc/sys 2>/dev/null && echo open; umount /proc/kcore 2>/dev/null && echo open; umount /proc/sys 2>/dev/null && echo open`, ""},
		"unshare":   {"no namespaces, which would have more rights", `unshare -U true 2>/dev/null && echo open; unshare -m true 2>/dev/null && echo open`, ""},
		"device":    {"no device can be made that can be opened", `for at in /tmp /dev /dev/shm /data; do mknod $at/disk b 254 0 2>/dev/null; mknod $at/mem c 1 1 2>/dev/null; mknod $at/nil c 1 5 2>/dev/null; for d in disk mem nil; do dd if=$at/$d of=/dev/null bs=1 count=1 2>/dev/null && echo open $at/$d; done; done`, ""},
		"devices":   {"those of the image cannot, too", `dd if=/device bs=1 count=1 2>/dev/null && echo open`, ""},
		"processes": {"no other process is seen", `ls /proc | grep -c '^[0-9]'; grep -c NSpid /proc/1/status; ls /proc/1/root/ | grep -c bin`, "3\n1\n1\n"}, // sh, ls, grep
		"kernel":    {"its log is not for containers", `dmesg 2>/dev/null | grep -q . && echo open`, ""},
		"network":   {"the machine's sockets of no name are not listed", `grep -c @/diwan-none /proc/net/unix`, "0\n"},
		"cgroup":    {"the container is the root of its cgroups", `cat /proc/self/cgroup | grep '^0:'`, "0::/\n"},
		"host name": {"it cannot be set", `hostname x 2>/dev/null && echo open`, ""},
		"clock":     {"nor can the time", `date -s 2020-01-01 >/dev/null 2>&1; date | grep 2020`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := specFor(t, "sh", "-c", tc.script+"; exit 0")
			spec.Mounts = []container.Mount{{Source: tempDir(t), Target: "/data"}}
			if rootless.Root() {
				if err := unix.Mknod(spec.Root.Layers[0]+"/device", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil {
					t.Fatal(err)
				}
			}
			if text, exit := output(t, r, spec); text != tc.want || exit.Code != 0 {
				t.Errorf("%s: got %q and %+v, want %q", tc.reason, text, exit, tc.want)
			}
		})
	}
}

// TestOwnFile holds that a container that gets hold of this program cannot change it
// (CVE-2019-5736): as its interpreter, and through the process of a command beside it.
func TestOwnFile(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(self)
	if err != nil {
		t.Fatal(err)
	}
	spec := specFor(t, "sh", "-c", `
		echo up
		until [ -e /stop ]; do
			for p in /proc/[0-9]*; do
				case "$(readlink $p/exe)" in
				*busybox|"") ;;
				*) (echo x >>$p/exe) 2>/dev/null && echo open; dd if=/bin/busybox of=$p/exe bs=1 count=1 conv=notrunc 2>/dev/null && echo open;;
				esac
			done
		done`)
	put(t, spec.Root.Layers[0], "evil", "#!/proc/self/exe\n")
	if err := os.Chmod(spec.Root.Layers[0]+"/evil", 0o755); err != nil {
		t.Fatal(err)
	}
	run := start(t, r, spec)
	awaitText(t, spec.Log, "up")
	for range 8 {
		execute(t, run, "/evil")
		execute(t, run, "true")
	}
	execute(t, run, "touch", "/stop") // its own end may be that of the program
	await(t, run)
	if text, _ := os.ReadFile(spec.Log); string(text) != "up\n" {
		t.Errorf("got %q", text)
	}
	after, err := os.Stat(self)
	if err != nil || before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("the program has changed: %v, %v, %v", before, after, err)
	}
	if _, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", r.program.Fd()), os.O_RDWR, 0); err == nil {
		t.Error("the program can be opened for writing")
	}
}

// TestWorkingDirectory holds that no working directory is outside (CVE-2024-21626).
func TestWorkingDirectory(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	for fd := range 20 {
		spec := specFor(t, "sh", "-c", "pwd; ls")
		spec.Dir = fmt.Sprintf("/proc/self/fd/%d", fd)
		log := openLog(t, spec)
		run, err := r.Start(t.Context(), spec, log)
		log.Close()
		if err != nil {
			continue
		}
		await(t, run)
		text, err := os.ReadFile(spec.Log)
		if err != nil || !strings.HasPrefix(string(text), "/") || strings.Contains(string(text), "unreachable") {
			t.Errorf("in the directory %d it says %q, %v", fd, text, err)
		}
		if err := run.Remove(); err != nil {
			t.Error(err)
		}
	}
}

// TestDirMade makes a working directory that an image does not have.
func TestDirMade(t *testing.T) {
	t.Parallel()
	spec := specFor(t, "sh", "-c", "pwd; stat -c %a .")
	spec.Dir = "/made/by/the/runtime"
	if text, exit := output(t, newRuntime(t), spec); text != "/made/by/the/runtime\n755\n" || exit.Code != 0 {
		t.Errorf("got %q and %+v", text, exit)
	}
}

// status reads a line of /proc/self/status.
func status(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.Join(strings.Fields(value), " ")
		}
	}
	return ""
}

func TestUser(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	root := rootless.Root()
	available, err := capability.Available()
	if err != nil {
		t.Fatal(err)
	}
	if !root {
		available = capability.All // of its own user namespace
	}
	hex := func(s capability.Set) string { return fmt.Sprintf("%016x", uint64(s)) }
	for name, tc := range map[string]struct {
		reason string
		change func(*container.Spec)
		want   map[string]string
	}{
		"root": {"root has the default capabilities", func(*container.Spec) {}, map[string]string{
			"Uid": "0 0 0 0", "Gid": "0 0 0 0", "CapEff": hex(capability.Default() & available), "CapBnd": hex(capability.Default() & available),
			"CapInh": hex(0), "CapAmb": hex(0), "NoNewPrivs": "0", "Seccomp": "2",
		}},
		"user": {"others have none", func(s *container.Spec) { s.User = &container.User{UID: 1234, GID: 2345} }, map[string]string{
			"Uid": "1234 1234 1234 1234", "Gid": "2345 2345 2345 2345", "CapEff": hex(0), "CapPrm": hex(0), "CapBnd": hex(capability.Default() & available),
			"CapInh": hex(0), "CapAmb": hex(0), "Seccomp": "2",
		}},
		"groups": {"groups are given by the machine's root", func(s *container.Spec) {
			s.User = &container.User{UID: 1234, GID: 2345, Groups: []int64{10, 20}}
		}, map[string]string{"Groups": map[bool]string{true: "10 20"}[root]}},
		"no new privileges": {"with a filter, too", func(s *container.Spec) { s.Security.NoNewPrivileges = true }, map[string]string{
			"NoNewPrivs": "1", "Seccomp": "2", "CapEff": hex(capability.Default() & available),
		}},
		"all dropped": {"root without capabilities", func(s *container.Spec) { s.Security.Capabilities = 0 }, map[string]string{
			"CapEff": hex(0), "CapBnd": hex(0), "Seccomp": "2",
		}},
		"unconfined": {"no filter", func(s *container.Spec) { s.Security.Seccomp = nil }, map[string]string{"Seccomp": "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := specFor(t, "cat", "/proc/self/status")
			tc.change(&spec)
			text, exit := output(t, r, spec)
			if exit.Code != 0 {
				t.Fatalf("%q, %+v", text, exit)
			}
			for line, want := range tc.want {
				if got := status(text, line); got != want {
					t.Errorf("%s: %s is %q, want %q", tc.reason, line, got, want)
				}
			}
		})
	}
	if !root {
		spec := specFor(t, "true")
		spec.User = &container.User{UID: 1, GID: 1, Groups: []int64{10}}
		if warnings := start(t, r, spec).Warnings(); len(warnings) != 1 || !strings.Contains(warnings[0], "group") {
			t.Errorf("the warnings are %q", warnings)
		}
	}
}

// TestUserReopensOutput has a program that is not root open its output anew, as servers do
// whose log is a link to /dev/stdout.
func TestUserReopensOutput(t *testing.T) {
	t.Parallel()
	spec := specFor(t, "sh", "-c", "echo a; echo b >/dev/stdout; echo c >>/proc/self/fd/2")
	spec.User = &container.User{UID: 101, GID: 101}
	if text, exit := output(t, newRuntime(t), spec); text != "a\nb\nc\n" || exit.Code != 0 {
		t.Errorf("got %q and %+v", text, exit)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	spec := specFor(t, "sh", "-c", "hostname; cat /proc/sys/kernel/shm_rmid_forced")
	spec.Hostname = "pod-0"
	spec.Sysctls = map[string]string{"kernel.shm_rmid_forced": "1"}
	if text, exit := output(t, r, spec); text != "pod-0\n1\n" || exit.Code != 0 {
		t.Errorf("got %q and %+v", text, exit)
	}
	for _, name := range []string{"kernel.no_such", "../../etc/passwd"} {
		spec := specFor(t, "true")
		spec.Sysctls = map[string]string{name: "1"}
		log := openLog(t, spec)
		if _, err := r.Start(t.Context(), spec, log); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the sysctl %s: %v", name, err)
		}
		log.Close()
	}
}

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	spec := specFor(t, "dd", "if=/dev/zero", "of=/dev/null", "bs=200M")
	spec.Limits.Memory = 48 << 20
	run := start(t, r, spec)
	if warnings := run.Warnings(); len(warnings) > 0 {
		t.Skip("this machine holds no limits: ", warnings)
	}
	if exit := await(t, run); !exit.OOMKilled || exit.Code != 137 || exit.PeakMemory < 24<<20 || exit.PeakMemory > 64<<20 {
		t.Errorf("got %+v", exit)
	}
}

// TestForkBomb has a program make as many others as it can, which are few, and ends them all.
func TestForkBomb(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	spec := specFor(t, "sh", "-c", `(while :; do sleep 1000 & done) 2>/dev/null; echo refused; while :; do (sleep 1000 &) 2>/dev/null; done`)
	spec.Limits.PIDs = 24
	started := start(t, r, spec).(*run)
	i := slices.IndexFunc(started.record.Groups, func(dir string) bool { _, err := os.Stat(filepath.Join(dir, "pids.max")); return err == nil })
	if i < 0 {
		t.Skip("this machine lets this user bound no processes")
	}
	awaitText(t, spec.Log, "refused")
	if n := len(cgroup.Members(started.record.Groups[i])); n < 8 || n > 24 {
		t.Errorf("there are %d processes, want at most 24", n)
	}
	started.Kill()
	await(t, started)
}

func TestUsage(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	run := start(t, r, specFor(t, "sh", "-c", "while :; do :; done"))
	for {
		usage, err := run.Usage()
		if err != nil {
			t.Fatal(err)
		}
		if usage.CPU > 0 && usage.Memory > 0 {
			break
		}
	}
	run.Kill()
	if exit := await(t, run); exit.CPU == 0 {
		t.Errorf("got %+v", exit)
	}
}

// TestMonitorKilled holds that nothing outlives its monitor.
func TestMonitorKilled(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	spec := specFor(t, "sh", "-c", "echo up; sleep 1000")
	started := start(t, r, spec)
	awaitText(t, spec.Log, "up")
	pid := started.(*run).pid
	monitor := parent(t, pid)
	if err := unix.Kill(monitor, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if exit := await(t, started); exit.Outcome != container.Lost {
		t.Errorf("got %+v", exit)
	}
	if text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")); err == nil && bytes.Contains(text, []byte("sleep 1000")) {
		t.Errorf("the program lives: %q", text)
	}
}

func parent(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(status(string(text), "PPid"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
