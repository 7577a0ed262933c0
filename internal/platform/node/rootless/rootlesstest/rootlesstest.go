// SPDX-License-Identifier: Apache-2.0

// Package rootlesstest lets a test run as root cover ordinary users: it runs the
// tests a second time, as a user who has only a directory. For a test run of an
// ordinary user it decides which tests can run.
package rootlesstest

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"diwan.dev/diwan/internal/platform/node/rootless"
)

// User is the id of the ordinary user and of its group, nobody's.
const User = 65534

// Home makes a directory that belongs to the User and that is removed after the test.
func Home(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "diwan-user-") // that of the test is for root alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, User, User); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Command is a program run as the User, with home as $HOME and $TMPDIR. The
// program is copied into home, for the User may not reach it elsewhere.
func Command(t testing.TB, home, program string, args ...string) *exec.Cmd {
	t.Helper()
	copied := filepath.Join(home, filepath.Base(program))
	if err := copyFile(copied, program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(copied, args...)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: User, Gid: User}}
	return cmd
}

// copyFile copies a program once.
func copyFile(to, from string) error {
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	// A child that is forked meanwhile would have the file open too: then nobody can run it.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// Need skips a test that only root can run as another user, and one where
// user namespaces are not allowed; CI must allow them.
func Need(t testing.TB) {
	t.Helper()
	if !rootless.Root() {
		t.Skip("this test is of an ordinary user: only root can become one")
	}
	cmd := Command(t, Home(t), "/bin/sh", "-c", "unshare --user --map-root-user --net --mount true")
	if out, err := cmd.CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("user namespaces are not allowed: %v: %s", err, out)
		}
		t.Skipf("user namespaces are not allowed: %v: %s", err, out)
	}
}

// NeedNamespaces skips a test whose Pods need namespaces, which root may make and
// who else has user namespaces; CI must allow them.
func NeedNamespaces(t testing.TB) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	err := rootless.Allowed()
	switch {
	case err != nil && os.Getenv("CI") == "true":
		t.Fatal(err)
	case err != nil:
		t.Skip("this test needs root or user namespaces: ", err)
	}
}

// Again runs the tests of this package that match the pattern once more, as the
// User. Its TestMain calls rootless.Enter.
func Again(t *testing.T, pattern string) {
	t.Helper()
	Need(t)
	cmd := Command(t, Home(t), os.Args[0], "-test.run", pattern)
	if out, err := cmd.CombinedOutput(); err != nil || bytes.Contains(out, []byte("no tests to run")) {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
}
