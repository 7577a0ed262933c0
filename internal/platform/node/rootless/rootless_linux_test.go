// SPDX-License-Identifier: Apache-2.0

package rootless_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/rootless"
	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
)

// roleEnv makes the test binary a program that enters a user namespace.
const roleEnv = "DIWAN_TEST_ROLE"

func TestMain(m *testing.M) {
	var living []int
	if os.Getenv(roleEnv) == "join" {
		living = make([]int, 1)
		fmt.Sscan(os.Args[1], &living[0])
	}
	if os.Getenv(roleEnv) != "" {
		if err := rootless.Enter(living); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		speak()
		return
	}
	os.Exit(m.Run())
}

// speak says who this process and its children are, and lets a child live until
// its input ends.
func speak() {
	space, _ := os.Readlink("/proc/self/ns/user")
	owner, ok := rootless.Owner()
	fmt.Println(os.Getpid(), space, os.Geteuid(), owner.UID, owner.GID, ok, rootless.Root())
	child := exec.Command("/bin/sh", "-c", "echo text >made; echo $$ $(id -u) $(id -g) $(grep CapEff /proc/self/status) $(ls -l /proc/$$/fd | grep -c user:); cat")
	child.SysProcAttr = new(syscall.SysProcAttr)
	rootless.AsUser(child.SysProcAttr, owner)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := child.Run(); err != nil {
		fmt.Println("error:", err)
	}
}

// TestEnter enters a new user namespace as an ordinary user, and that of a
// child whose parent was killed.
func TestEnter(t *testing.T) {
	rootlesstest.Need(t)
	home := rootlesstest.Home(t)
	start := func(args ...string) (cmd *exec.Cmd, in io.Closer, lines func() []string) {
		cmd = rootlesstest.Command(t, home, os.Args[0], args...)
		cmd.Env = append(cmd.Env, roleEnv+"=enter")
		if len(args) > 0 {
			cmd.Env = append(cmd.Env, roleEnv+"=join")
		}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { in.Close(); cmd.Wait() })
		return cmd, in, func() []string {
			var line []byte
			for b := make([]byte, 1); ; line = append(line, b[0]) {
				if _, err := out.Read(b); err != nil || b[0] == '\n' {
					return strings.Fields(string(line))
				}
			}
		}
	}
	cmd, in, next := start()
	parent, child := next(), next()
	if len(parent) < 2 || len(child) < 1 {
		t.Fatalf("got %q, then %q", parent, child)
	}
	if got, want := strings.Join(append(parent[:1:1], parent[2:]...), " "), fmt.Sprint(cmd.Process.Pid, 0, rootlesstest.User, rootlesstest.User, true, false); got != want {
		t.Errorf("the process says %q, want %q", got, want)
	}
	if got, want := strings.Join(child[1:], " "), fmt.Sprintf("%d %d CapEff: 0000000000000000 0", rootlesstest.User, rootlesstest.User); got != want {
		t.Errorf("its child says %q, want %q", got, want)
	}
	var made unix.Stat_t
	if err := unix.Stat(home+"/made", &made); err != nil || made.Uid != rootlesstest.User {
		t.Errorf("the child's file belongs to %d, %v", made.Uid, err)
	}

	cmd.Process.Kill()
	_, _, next = start(child[0])
	if again := next(); len(again) < 2 || again[1] != parent[1] {
		t.Errorf("a later process is in %q, want the namespace %s", again, parent[1])
	}
	in.Close() // lets the child end
}
