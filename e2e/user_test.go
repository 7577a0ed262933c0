// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
)

// TestOrdinaryUser runs the cluster as a user without any rights: Pods have
// networks and mounts of their own, reach the machine, and outlive a kill.
func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	rootlesstest.Need(t)
	home := rootlesstest.Home(t)
	s := &server{t: t, home: home, user: true}
	s.begin()

	s.parts(t, func(part part) {
		part("ring", func(t *testing.T, s *server) { s.meetsAsUser(t) })
		part("surroundings", func(t *testing.T, s *server) { s.hasSurroundings(t) })
		part("mpi", func(t *testing.T, s *server) { s.spansByMPI(t) })
	})

	s.gives(t, "kubectl", "apply", "-f", "e2e/testdata/user/server.yaml")
	s.gives(t, "kubectl", "wait", "--for=condition=Ready", "--timeout=60s", "pod/server")
	const page = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:80/').read().decode())"
	before := s.gives(t, "kubectl", "exec", "server", "--", "python3", "-c", page)
	s.kill()
	s.start()
	s.gives(t, "kubectl", "wait", "--for=condition=Ready", "--timeout=60s", "pod/server")
	if after := s.gives(t, "kubectl", "exec", "server", "--", "python3", "-c", page); after != before || !strings.HasPrefix(after, "served by ") {
		t.Errorf("the server said %q before the kill and %q after it", before, after)
	}
	ip := s.gives(t, "kubectl", "get", "pod", "server", "-o", "jsonpath={.status.podIP}")
	call := strings.ReplaceAll(page, "127.0.0.1", ip)
	s.gives(t, "kubectl", "run", "caller", "--image=none", "--restart=Never", "--command", "--", "python3", "-c", call)
	s.gives(t, "kubectl", "wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s", "pod/caller")
	if got := s.gives(t, "kubectl", "logs", "caller"); got != before {
		t.Errorf("a new Pod hears %q of the one from before the kill, want %q", got, before)
	}
	s.gives(t, "kubectl", "delete", "pod", "server", "--grace-period=1")
}

// meetsAsUser has three replicas that listen on one port meet.
func (s *server) meetsAsUser(t *testing.T) {
	s.gives(t, "run", "e2e/testdata/user/ring.yaml")
	for i := range 3 {
		want := fmt.Sprintf("heard 0 1 2 as %d\n", rootlesstest.User)
		if got := s.gives(t, "kubectl", "logs", "ring-worker-"+strconv.Itoa(i)); got != want {
			t.Errorf("worker %d says %q, want %q", i, got, want)
		}
	}
}

// hasSurroundings looks at what a Pod has of the machine and of the cluster.
func (s *server) hasSurroundings(t *testing.T) {
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "the machine") }))
	defer outside.Close()
	manifest, err := os.ReadFile("testdata/user/surroundings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.home, "surroundings.yaml") // where the user may read it
	text := strings.ReplaceAll(string(manifest), "OUTSIDE", strconv.Itoa(outside.Listener.Addr().(*net.TCPAddr).Port))
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	s.gives(t, "kubectl", "apply", "-f", file)
	s.gives(t, "kubectl", "wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s", "pod/surroundings")
	if got, want := s.gives(t, "kubectl", "logs", "surroundings"), fmt.Sprintf("the machine\nTrue\n['made'] %d\n", rootlesstest.User); got != want {
		t.Errorf("the Pod sees %q, want %q", got, want)
	}
}

// spansByMPI has mpirun reach workers by ssh and by kubectl, also where the
// manifests want user 1000.
func (s *server) spansByMPI(t *testing.T) {
	needs(t, "mpirun", "mpi")
	program := filepath.Join(s.home, "pi") // where the user may read it
	text, err := os.ReadFile("testdata/mpi/pi")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, text, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, image := range []string{"mpioperator/mpi-pi", "mpioperator/openmpi"} {
		cmd := rootlesstest.Command(t, s.home, binary, "images", "map", image, "--file", "/home/mpiuser/pi="+program)
		cmd.Env = append(cmd.Env, "DIWAN_HOME="+s.home)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	s.estimatesPi(t)
	s.estimatesPiOnNodes(t)
	s.gives(t, "run", "e2e/testdata/user/mpijob.yaml")
	isPi(t, s.gives(t, "kubectl", "logs", "pi-exec-launcher"), "pi-exec-worker-0", "pi-exec-worker-1")
}

// gives runs a command that succeeds, and returns what it printed.
func (s *server) gives(t *testing.T, args ...string) string {
	t.Helper()
	begin := time.Now()
	out, errs, code := s.diwan(args...)
	if code != 0 {
		t.Fatalf("diwan %s ended with %d after %v:\n%s%s", strings.Join(args, " "), code, time.Since(begin), out, errs)
	}
	return out
}
