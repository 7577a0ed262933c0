// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bufio"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"diwan.dev/diwan/internal/platform/node/rootless"
	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
)

// TestUserKilled kills an ordinary user's process that connected a Pod. The next
// enters the same user namespace, finds the bridge and reaches the Pod.
func TestUserKilled(t *testing.T) {
	t.Parallel()
	rootlesstest.Need(t)
	home := rootlesstest.Home(t)
	owner := func(args ...string) (*exec.Cmd, []string) {
		cmd := rootlesstest.Command(t, home, os.Args[0], append([]string{home}, args...)...)
		cmd.Env = append(cmd.Env, "DIWAN_TEST_ROLE=own")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatalf("the owner of the network said %q, %v", line, err)
		}
		return cmd, strings.Fields(line)
	}
	first, said := owner()
	var pid int
	if len(said) == 2 {
		pid = parse(said[0])
	}
	if pid <= 0 {
		t.Fatalf("the first owner says %q, want the process and address of its Pod", said)
	}
	t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
	first.Process.Kill()
	first.Wait()
	_, heard := owner(said...)
	if got := strings.Join(heard, " "); !strings.HasPrefix(got, "hello from 10.") {
		t.Errorf("the second owner heard %q of the Pod", got)
	}
	if syscall.Kill(pid, 0) != nil {
		t.Error("the Pod's program had ended")
	}
}

func parse(number string) (n int) {
	fmt.Sscan(number, &n)
	return n
}

// hold is the owner of a home's network: without more arguments it connects a Pod
// and tells its process and address, and with these it calls the Pod.
func hold(home string, args []string) error {
	plan, err := PlanFor(home)
	if err != nil {
		return err
	}
	n, err := New(namespaced(plan))
	if err != nil {
		return err
	}
	if len(args) > 0 {
		ip, err := netip.ParseAddr(args[1])
		if err != nil {
			return err
		}
		if err := n.Restore(map[string]Sandbox{"a": {IP: ip, Bind: ip}}); err != nil {
			return err
		}
		fmt.Println(call(n, args[1]+":80"))
		select {}
	}
	s, err := n.Acquire(context.Background(), "a", false)
	if err != nil {
		return err
	}
	return n.(*namespaces).connect(s)
}

// connect starts a greeter in the sandbox, as the node would start a container.
func (n *namespaces) connect(s Sandbox) error {
	ns, err := os.Open(s.NetnsPath)
	if err != nil {
		return err
	}
	bridge, err := os.Open(s.Hold)
	if err != nil {
		return err
	}
	cmd := exec.Command(os.Args[0], ":80", "hello")
	cmd.Env = []string{"DIWAN_TEST_ROLE=stay"}
	cmd.ExtraFiles = []*os.File{nil, nil, bridge}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	owner, _ := rootless.Owner()
	rootless.AsUser(cmd.SysProcAttr, owner)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := inNamespace(n.bridge.home, ns, cmd.Start); err != nil {
		return err
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "listening\n" {
		return fmt.Errorf("the greeter says %q, %w", line, err)
	}
	fmt.Println(cmd.Process.Pid, s.IP)
	select {}
}
