// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/thread"
)

// hostileEnv is where an ordinary user, who may have no compiler, finds the program.
const hostileEnv = "DIWAN_TEST_HOSTILE"

// hostile builds the program that tries to leave its container, and returns its path. TestMain
// removes it.
var hostile = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(hostileEnv); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "diwan-hostile-")
	if err != nil {
		return "", err
	}
	built = dir
	path := filepath.Join(dir, "hostile")
	build := exec.Command("go", "build", "-o", path, "./testdata/hostile")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build the program: %w\n%s", err, out)
	}
	return path, os.Chmod(dir, 0o755)
})

// built is the directory of what was built; "" is none.
var built string

// putHostile puts the program into a layer.
func putHostile(t *testing.T, layer string) {
	t.Helper()
	path, err := hostile()
	if err != nil {
		t.Fatal(err)
	}
	copyProgram(t, filepath.Join(layer, "hostile"), path)
}

// TestHostileProgram runs a program that tries what others have left containers by, with the
// rights of root and of others, with the filter for syscalls and without it.
func TestHostileProgram(t *testing.T) {
	t.Parallel()
	r := newRuntime(t)
	victim := exec.Command("sleep", "1000")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { victim.Process.Kill(); victim.Wait() })
	outside := put(t, tempDir(t), "outside", "of the machine")
	name := fmt.Sprintf("diwan-hostile-%d", os.Getpid())
	listener, err := net.Listen("unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	key, err := unix.AddKey("user", name, []byte("secret"), unix.KEY_SPEC_SESSION_KEYRING)
	if err == nil {
		t.Cleanup(func() { unix.KeyctlInt(unix.KEYCTL_UNLINK, key, unix.KEY_SPEC_SESSION_KEYRING, 0, 0) })
	}
	var space *os.File
	err = thread.Run(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		space, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { space.Close() })

	// Without the filter, the kernel's own interfaces are there for any program, as on a
	// cluster. A way out is none of them.
	unfiltered := []string{"namespaces", "sockets", "compat", "keys", "kernel", "mounts"}
	for name, tc := range map[string]struct {
		change func(*container.Spec)
		left   []string
	}{
		"root":               {func(*container.Spec) {}, nil},
		"user":               {func(s *container.Spec) { s.User = &container.User{UID: 1000, GID: 1000} }, nil},
		"no new privileges":  {func(s *container.Spec) { s.Security.NoNewPrivileges = true }, nil},
		"read-only":          {func(s *container.Spec) { s.Root.ReadOnly = true }, nil},
		"root, unfiltered":   {func(s *container.Spec) { s.Security.Seccomp = nil }, unfiltered},
		"user, unfiltered":   {func(s *container.Spec) { s.User = &container.User{UID: 1000, GID: 1000}; s.Security.Seccomp = nil }, unfiltered},
		"without a terminal": {func(s *container.Spec) { s.Stdin = true }, nil},
		"at a terminal":      {func(s *container.Spec) { s.Stdin, s.TTY = true, true }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := specFor(t, append([]string{"/hostile"}, tc.left...)...)
			putHostile(t, spec.Root.Layers[0])
			data := tempDir(t)
			if err := os.Chmod(data, 0o777); err != nil {
				t.Fatal(err)
			}
			spec.Mounts = []container.Mount{{Source: data, Target: "/data"}}
			spec.Netns = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), space.Fd())
			spec.Env = append(spec.Env, fmt.Sprintf("HOST_PID=%d", victim.Process.Pid), "HOST_FILE="+outside, "HOST_SOCKET="+name, "HOST_KEY="+name)
			tc.change(&spec)
			checkHostile(t, r, spec, 19-len(tc.left))
		})
	}
	t.Run("beside a program", func(t *testing.T) {
		t.Parallel()
		spec := specFor(t, "sleep", "1000")
		putHostile(t, spec.Root.Layers[0])
		spec.Netns = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), space.Fd())
		spec.Env = append(spec.Env, fmt.Sprintf("HOST_PID=%d", victim.Process.Pid), "HOST_FILE="+outside, "HOST_SOCKET="+name, "HOST_KEY="+name)
		text, err := execute(t, start(t, r, spec), "/hostile")
		if err != nil {
			t.Error(err)
		}
		judgeHostile(t, text, 19)
	})
}

func checkHostile(t *testing.T, r *Runtime, spec container.Spec, want int) {
	t.Helper()
	text, exit := output(t, r, spec)
	if exit.Code != 0 {
		t.Errorf("it ends with %+v", exit)
	}
	judgeHostile(t, strings.ReplaceAll(text, "\r\n", "\n"), want)
}

func judgeHostile(t *testing.T, text string, want int) {
	t.Helper()
	if want := fmt.Sprintf("tried %d\n", want); text != want {
		t.Errorf("it says %q, want %q alone\n%s", text[:min(200, len(text))], want, text)
	}
}
