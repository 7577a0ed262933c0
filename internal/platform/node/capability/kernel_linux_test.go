// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/rootless"
	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
)

// TestNumbers holds the names to the numbers of linux/capability.h.
func TestNumbers(t *testing.T) {
	t.Parallel()
	want := map[string]int{
		"CHOWN": unix.CAP_CHOWN, "DAC_OVERRIDE": unix.CAP_DAC_OVERRIDE, "DAC_READ_SEARCH": unix.CAP_DAC_READ_SEARCH, "FOWNER": unix.CAP_FOWNER,
		"FSETID": unix.CAP_FSETID, "KILL": unix.CAP_KILL, "SETGID": unix.CAP_SETGID, "SETUID": unix.CAP_SETUID, "SETPCAP": unix.CAP_SETPCAP,
		"LINUX_IMMUTABLE": unix.CAP_LINUX_IMMUTABLE, "NET_BIND_SERVICE": unix.CAP_NET_BIND_SERVICE, "NET_BROADCAST": unix.CAP_NET_BROADCAST,
		"NET_ADMIN": unix.CAP_NET_ADMIN, "NET_RAW": unix.CAP_NET_RAW, "IPC_LOCK": unix.CAP_IPC_LOCK, "IPC_OWNER": unix.CAP_IPC_OWNER,
		"SYS_MODULE": unix.CAP_SYS_MODULE, "SYS_RAWIO": unix.CAP_SYS_RAWIO, "SYS_CHROOT": unix.CAP_SYS_CHROOT, "SYS_PTRACE": unix.CAP_SYS_PTRACE,
		"SYS_PACCT": unix.CAP_SYS_PACCT, "SYS_ADMIN": unix.CAP_SYS_ADMIN, "SYS_BOOT": unix.CAP_SYS_BOOT, "SYS_NICE": unix.CAP_SYS_NICE,
		"SYS_RESOURCE": unix.CAP_SYS_RESOURCE, "SYS_TIME": unix.CAP_SYS_TIME, "SYS_TTY_CONFIG": unix.CAP_SYS_TTY_CONFIG, "MKNOD": unix.CAP_MKNOD,
		"LEASE": unix.CAP_LEASE, "AUDIT_WRITE": unix.CAP_AUDIT_WRITE, "AUDIT_CONTROL": unix.CAP_AUDIT_CONTROL, "SETFCAP": unix.CAP_SETFCAP,
		"MAC_OVERRIDE": unix.CAP_MAC_OVERRIDE, "MAC_ADMIN": unix.CAP_MAC_ADMIN, "SYSLOG": unix.CAP_SYSLOG, "WAKE_ALARM": unix.CAP_WAKE_ALARM,
		"BLOCK_SUSPEND": unix.CAP_BLOCK_SUSPEND, "AUDIT_READ": unix.CAP_AUDIT_READ, "PERFMON": unix.CAP_PERFMON, "BPF": unix.CAP_BPF,
		"CHECKPOINT_RESTORE": unix.CAP_CHECKPOINT_RESTORE,
	}
	if len(names) != unix.CAP_LAST_CAP+1 || len(want) != len(names) {
		t.Errorf("%d names and %d numbers, and the kernel has %d", len(names), len(want), unix.CAP_LAST_CAP+1)
	}
	for bit, name := range names {
		if number, ok := want[name]; !ok || number != bit {
			t.Errorf("%s is %d, want %d, %v", name, bit, number, ok)
		}
	}
}

// status reads a set of a thread from text as /proc/PID/status has it.
func status(t *testing.T, text, name string) Set {
	t.Helper()
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return Set(set)
		}
	}
	t.Fatalf("no %s in %s", name, text)
	return 0
}

// TestAvailable compares with what the kernel says elsewhere.
func TestAvailable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Available()
	if want := status(t, string(text), "CapPrm") & status(t, string(text), "CapBnd"); err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

// TestAvailableToUsers is the same for somebody who has nothing.
func TestAvailableToUsers(t *testing.T) {
	t.Parallel()
	if !rootless.Root() {
		t.Skip("only root can become another user; TestAvailable has run as one")
	}
	cmd := rootlesstest.Command(t, rootlesstest.Home(t), os.Args[0], "-test.run", "^TestAvailable$", "-test.v")
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: TestAvailable")) {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
}

// TestKernelTakesSets limits a thread, and what it executes, as a container is limited.
func TestKernelTakesSets(t *testing.T) {
	t.Parallel()
	if !rootless.Root() {
		t.Skip("only root has capabilities to give away")
	}
	available, err := Available()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		reason    string
		add, drop []string
	}{
		{"the default", nil, nil},
		{"one", []string{"NET_BIND_SERVICE"}, []string{"ALL"}},
		{"all that there is", []string{"ALL"}, nil},
		{"none", nil, []string{"ALL"}},
	} {
		want, err := Default().Apply(tt.add, tt.drop)
		if err != nil {
			t.Fatal(err)
		}
		want = want.Intersect(available)
		out, err := limited(want, "cat", "/proc/self/status")
		if err != nil {
			t.Errorf("%s: %v: %s", tt.reason, err, out)
			continue
		}
		for set, want := range map[string]Set{"CapBnd": want, "CapPrm": want, "CapEff": want, "CapInh": 0, "CapAmb": 0} {
			if got := status(t, string(out), set); got != want {
				t.Errorf("%s: %s is %v, want %v", tt.reason, set, got, want)
			}
		}
	}
}

// limited runs a program from a thread of its own that has only these capabilities.
func limited(s Set, args ...string) (out []byte, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // until its end
		for bit := range names {
			if !s.Has(1 << bit) {
				// A kernel that is older than the name has nothing to drop.
				if err = unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(bit), 0, 0, 0); err != nil && err != unix.EINVAL {
					return
				}
			}
		}
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		for i, word := range s.Words() {
			data[i] = unix.CapUserData{Effective: word, Permitted: word}
		}
		if err = unix.Capset(&header, &data[0]); err != nil {
			return
		}
		out, err = exec.Command(args[0], args[1:]...).CombinedOutput()
	}()
	<-done
	return out, err
}
