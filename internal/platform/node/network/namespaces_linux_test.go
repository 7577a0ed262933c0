// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/rootless"
	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
)

func open(t *testing.T, cfg Config) *namespaces {
	t.Helper()
	rootlesstest.NeedNamespaces(t)
	n, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, uid := range n.(*namespaces).uids() {
			n.Release(uid)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		waitGone(t, cfg.Plan)
	})
	return n.(*namespaces)
}

func namespaced(plan Plan) Config {
	cfg := Default(plan)
	cfg.Mode = Namespaces
	return cfg
}

func (n *namespaces) uids() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var uids []string
	for uid := range n.used {
		uids = append(uids, uid)
	}
	return uids
}

func acquire(t *testing.T, n Network, uid string) Sandbox {
	t.Helper()
	s, err := n.Acquire(t.Context(), uid, false)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// devices are the network devices of a plan on this machine.
func devices(t *testing.T, plan Plan) []string {
	t.Helper()
	links, err := list(netlink.LinkList)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range links {
		if strings.Contains(l.Attrs().Name, plan.ID) {
			names = append(names, l.Attrs().Name)
		}
	}
	return names
}

func waitGone(t *testing.T, plan Plan) {
	t.Helper()
	eventually(t, "devices of "+plan.ID+" removed", func() bool { return len(devices(t, plan)) == 0 })
}

// inPod starts this test binary as a program of a Pod: see TestMain.
func inPod(t *testing.T, n *namespaces, s Sandbox, role string, args ...string) *program {
	t.Helper()
	ns, err := os.Open(s.NetnsPath)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = []string{"DIWAN_TEST_ROLE=" + role}
	cmd.Stderr = os.Stderr
	if s.Hold != "" {
		hold, err := os.Open(s.Hold)
		if err != nil {
			t.Fatal(err)
		}
		defer hold.Close()
		cmd.ExtraFiles = []*os.File{nil, nil, hold} // 3, 4, HoldFile
	}
	p := &program{cmd: cmd}
	if p.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := inNamespace(n.bridge.home, ns, cmd.Start); err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	t.Cleanup(p.stop)
	return p
}

type program struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	once sync.Once
}

func (p *program) stop() {
	p.once.Do(func() {
		p.in.Close()
		p.cmd.Wait()
	})
}

func (p *program) line(t *testing.T) string {
	t.Helper()
	s, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("program ended early: %q, %v", s, err)
	}
	return strings.TrimSuffix(s, "\n")
}

func TestMain(m *testing.M) {
	switch os.Getenv("DIWAN_TEST_ROLE") {
	case "own": // see there
		var living []int
		if len(os.Args) > 2 {
			living = append(living, parse(os.Args[2]))
		}
		err := rootless.Enter(living)
		if err == nil {
			err = hold(os.Args[1], os.Args[2:])
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case "greet", "stay": // listen on an address, greet each caller, until stdin ends, or a signal
		l, err := net.Listen("tcp", os.Args[1])
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("listening")
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				fmt.Fprintf(c, "%s from %s\n", os.Args[2], c.RemoteAddr().(*net.TCPAddr).IP)
				c.Close()
			}
		}()
		if os.Getenv("DIWAN_TEST_ROLE") == "stay" {
			select {}
		}
		io.Copy(io.Discard, os.Stdin)
	case "call": // connect to an address and print what it says
		fmt.Println(call(machine{}, os.Args[1]))
	case "ask": // send packets to an address and print the answers
		fmt.Println(ask(os.Args[1], os.Args[2]))
	case "sleep": // until stdin ends
		fmt.Println("sleeping")
		io.Copy(io.Discard, os.Stdin)
	default:
		if err := rootless.Enter(nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(m.Run())
	}
}

// call connects to an address by the sockets and returns what it says.
func call(via sockets, address string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := via.DialContext(ctx, "tcp", address)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	b, err := io.ReadAll(c)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b))
}

func TestPodsShareAPort(t *testing.T) {
	t.Parallel()
	n := open(t, namespaced(newPlanOf(t)))
	a, b := acquire(t, n, "a"), acquire(t, n, "b")
	for name, s := range map[string]Sandbox{"a": a, "b": b} {
		if got := inPod(t, n, s, "greet", ":80", "hello of "+name).line(t); got != "listening" {
			t.Fatal(got)
		}
	}
	if got, want := call(n, a.IP.String()+":80"), "hello of a from "+n.HostIP().String(); got != want {
		t.Errorf("the host heard %q, want %q", got, want)
	}
	if got, want := inPod(t, n, a, "call", b.IP.String()+":80").line(t), "hello of b from "+a.IP.String(); got != want {
		t.Errorf("Pod a heard %q of b, want %q", got, want)
	}
	if got, want := inPod(t, n, b, "call", "127.0.0.1:80").line(t), "hello of b from 127.0.0.1"; got != want {
		t.Errorf("Pod b heard %q of its loopback, want %q", got, want)
	}
	conn, err := n.Dial(t.Context(), "b", 80)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, err := io.ReadAll(conn); err != nil || string(got) != "hello of b from 127.0.0.1\n" {
		t.Errorf("port-forward heard %q, %v", got, err)
	}
}

func TestPodReachesClusterIPsOfThisMachine(t *testing.T) {
	t.Parallel()
	n := open(t, namespaced(newPlanOf(t)))
	ip := n.cfg.Plan.Services.Masked().Addr().Next()
	l, err := n.Listen("tcp", netip.AddrPortFrom(ip, 443).String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			fmt.Fprintln(c, "API of", c.RemoteAddr().(*net.TCPAddr).IP)
			c.Close()
		}
	}()
	s := acquire(t, n, "a")
	if got, want := inPod(t, n, s, "call", ip.String()+":443").line(t), "API of "+s.IP.String(); got != want {
		t.Errorf("Pod heard %q, want %q", got, want)
	}
	if got, want := call(n, ip.String()+":443"), "API of "+ip.String(); got != want {
		t.Errorf("host heard %q, want %q", got, want)
	}
}

func TestNamespacesAreReusedOnlyClean(t *testing.T) {
	t.Parallel()
	tests := []struct {
		reason string
		use    func(t *testing.T, n *namespaces, s Sandbox)
		reused bool
	}{
		{"an unused namespace is as new", func(*testing.T, *namespaces, Sandbox) {}, true},
		{"a program that used no network leaves nothing", func(t *testing.T, n *namespaces, s Sandbox) {
			inPod(t, n, s, "sleep").stop()
		}, true},
		{"a listener without connections leaves nothing", func(t *testing.T, n *namespaces, s Sandbox) {
			p := inPod(t, n, s, "greet", ":80", "hello")
			p.line(t)
			p.stop()
		}, true},
		{"a connection leaves a port in TIME_WAIT", func(t *testing.T, n *namespaces, s Sandbox) {
			p := inPod(t, n, s, "greet", ":80", "hello")
			p.line(t)
			if got := call(n, s.IP.String()+":80"); !strings.HasPrefix(got, "hello") {
				t.Fatal(got)
			}
			p.stop()
		}, false},
		{"a program changed the routes", func(t *testing.T, n *namespaces, s Sandbox) {
			ns, err := os.Open(s.NetnsPath)
			if err != nil {
				t.Fatal(err)
			}
			defer ns.Close()
			err = inNamespace(n.bridge.home, ns, func() error {
				lo, err := netlink.LinkByName("lo")
				if err != nil {
					return err
				}
				_, dst, _ := net.ParseCIDR("192.0.2.0/24")
				return netlink.RouteAdd(&netlink.Route{LinkIndex: lo.Attrs().Index, Dst: dst, Scope: unix.RT_SCOPE_LINK})
			})
			if err != nil {
				t.Fatal(err)
			}
		}, false},
		{"a process still lives", func(t *testing.T, n *namespaces, s Sandbox) {
			inPod(t, n, s, "greet", ":80", "hello").line(t)
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			cfg := namespaced(newPlanOf(t))
			cfg.Spare = 0
			n := open(t, cfg)
			s := acquire(t, n, "first")
			tt.use(t, n, s)
			if err := n.Release("first"); err != nil {
				t.Fatal(err)
			}
			if got := acquire(t, n, "second").IP == s.IP; got != tt.reused {
				t.Errorf("namespace reused: %v, want %v", got, tt.reused)
			}
		})
	}
}

func TestAcquireIsIdempotent(t *testing.T) {
	t.Parallel()
	n := open(t, namespaced(newPlanOf(t)))
	if a, b := acquire(t, n, "a"), acquire(t, n, "a"); a != b {
		t.Errorf("got %v, then %v", a, b)
	}
	host, err := n.Acquire(t.Context(), "h", true)
	if err != nil {
		t.Fatal(err)
	}
	if host.NetnsPath != "" || host.IP != n.HostIP() {
		t.Errorf("a Pod on the host's network got %+v", host)
	}
	for _, uid := range []string{"a", "h", "unknown"} {
		if err := n.Release(uid); err != nil {
			t.Errorf("release of %s: %v", uid, err)
		}
	}
}

func TestManyPodsAtOnce(t *testing.T) {
	t.Parallel()
	n := open(t, namespaced(newPlanOf(t)))
	const pods = 60
	got := make([]Sandbox, pods)
	var wg sync.WaitGroup
	for i := range pods {
		wg.Go(func() {
			s, err := n.Acquire(context.Background(), fmt.Sprint(i), false)
			if err != nil {
				t.Error(err)
			}
			got[i] = s
		})
	}
	wg.Wait()
	seen := map[netip.Addr]bool{}
	for _, s := range got {
		if seen[s.IP] {
			t.Errorf("address %s was given twice", s.IP)
		}
		seen[s.IP] = true
	}
}

func TestRestoreAfterTheNodeWasKilled(t *testing.T) {
	t.Parallel()
	rootlesstest.NeedNamespaces(t)
	plan := newPlanOf(t)
	killed, err := New(namespaced(plan))
	if err != nil {
		t.Fatal(err)
	}
	dead := killed.(*namespaces)
	used := map[string]Sandbox{"living": acquire(t, dead, "living"), "dead": acquire(t, dead, "dead")}
	p := inPod(t, dead, used["living"], "greet", ":80", "still here")
	p.line(t)
	dead.die()

	n := open(t, namespaced(plan))
	if err := n.Restore(used); err != nil {
		t.Fatal(err)
	}
	for uid, want := range used {
		if got := acquire(t, n, uid); got.IP != want.IP {
			t.Errorf("Pod %s is at %s, was at %s", uid, got.IP, want.IP)
		}
	}
	if got, want := call(n, used["living"].IP.String()+":80"), "still here from "+n.HostIP().String(); got != want {
		t.Errorf("the living Pod says %q, want %q", got, want)
	}
	conn, err := n.Dial(t.Context(), "living", 80)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	other := acquire(t, n, "new")
	if other.IP == used["living"].IP || other.IP == used["dead"].IP {
		t.Errorf("a new Pod got the address %s of another", other.IP)
	}
	p.stop()
}

// die drops what the kernel drops when a process is killed.
func (n *namespaces) die() {
	close(n.wake)
	n.filled.Wait()
	for _, s := range n.ready {
		s.file.Close()
	}
	for _, s := range n.used {
		s.file.Close()
	}
	n.bridge.close()
}

func TestCloseKeepsThePodsThatLive(t *testing.T) {
	t.Parallel()
	rootlesstest.NeedNamespaces(t)
	plan := newPlanOf(t)
	first, err := New(namespaced(plan))
	if err != nil {
		t.Fatal(err)
	}
	s := acquire(t, first, "a")
	p := inPod(t, first.(*namespaces), s, "greet", ":80", "hello")
	p.line(t)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	n := open(t, namespaced(plan))
	if err := n.Restore(map[string]Sandbox{"a": s}); err != nil {
		t.Fatal(err)
	}
	if got := call(n, s.IP.String()+":80"); !strings.HasPrefix(got, "hello") {
		t.Errorf("the Pod says %q", got)
	}
	p.stop()
}

func TestStartSweepsAbandonedNetworks(t *testing.T) {
	t.Parallel()
	rootlesstest.NeedNamespaces(t)
	plan := newPlanOf(t)
	abandoned, err := New(namespaced(plan))
	if err != nil {
		t.Fatal(err)
	}
	abandoned.(*namespaces).die()
	eventually(t, "the abandoned network swept", func() bool {
		n, err := New(namespaced(newPlanOf(t)))
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		return len(devices(t, plan)) == 0
	})
}

// TestCloseLeavesNothingOfPodsThatEnded closes the network of a Pod whose program
// was ended, as when Diwan stops: the Pod has its address again at the next start.
func TestCloseLeavesNothingOfPodsThatEnded(t *testing.T) {
	t.Parallel()
	rootlesstest.NeedNamespaces(t)
	plan := newPlanOf(t)
	first, err := New(namespaced(plan))
	if err != nil {
		t.Fatal(err)
	}
	s := acquire(t, first, "a")
	p := inPod(t, first.(*namespaces), s, "greet", ":80", "hello")
	p.line(t)
	p.stop()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	waitGone(t, plan)
	n := open(t, namespaced(plan))
	if err := n.Restore(map[string]Sandbox{"a": s}); err != nil {
		t.Fatal(err)
	}
	if again := acquire(t, n, "a"); again.IP != s.IP {
		t.Errorf("the Pod is at %s, was at %s", again.IP, s.IP)
	}
}

// TestOpenWhileOthersSweep opens a network again and again while others look
// whether it has an owner, and a stranger holds a socket of its name.
func TestOpenWhileOthersSweep(t *testing.T) {
	t.Parallel()
	rootlesstest.NeedNamespaces(t)
	plan := newPlanOf(t)
	stranger, err := net.Listen("unix", "@diwan/network/"+plan.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var sweepers sync.WaitGroup
	defer sweepers.Wait()
	defer cancel()
	for range 2 {
		sweepers.Go(func() {
			for ctx.Err() == nil {
				if mark, err := own(plan.Home); err == nil {
					mark.Close()
				}
			}
		})
	}
	for range 5 {
		n, err := New(namespaced(plan))
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
	waitGone(t, plan)
}

func TestOneOwnerForAHome(t *testing.T) {
	t.Parallel()
	cfg := namespaced(newPlanOf(t))
	open(t, cfg)
	if second, err := New(cfg); err == nil {
		second.Close()
		t.Error("a second process opened the network of the same home")
	}
}

func BenchmarkAcquireRelease(b *testing.B) {
	plan, err := PlanFor(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	n, err := New(namespaced(plan))
	if err != nil {
		b.Skip(err)
	}
	defer n.Close()
	for b.Loop() {
		if _, err := n.Acquire(b.Context(), "a", false); err != nil {
			b.Fatal(err)
		}
		if err := n.Release("a"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewNamespace(b *testing.B) {
	plan, err := PlanFor(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	cfg := namespaced(plan)
	cfg.Spare, cfg.Idle = 0, 0
	n, err := New(cfg)
	if err != nil {
		b.Skip(err)
	}
	defer n.Close()
	for b.Loop() {
		if _, err := n.Acquire(b.Context(), "a", false); err != nil {
			b.Fatal(err)
		}
		if err := n.Release("a"); err != nil {
			b.Fatal(err)
		}
	}
}
