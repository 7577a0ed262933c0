// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"diwan.dev/diwan/internal/platform/node/cgroup"
	"diwan.dev/diwan/internal/platform/node/network"
	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
	"diwan.dev/diwan/internal/testing/program"
)

// root is the module's directory, seen from this package.
const root = ".."

// binary is the path of the diwan that the tests run.
var binary string

func TestMain(m *testing.M) {
	if os.Getenv(reporting) != "" {
		os.Exit(report(os.Args[1:]))
	}
	os.Exit(build(m))
}

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "diwan-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	// Containers that run as another user run it, too.
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	built, err := program.Build("cmd/diwan")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if out, err := exec.Command("cp", built, dir).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "cannot copy diwan: %v\n%s", err, out)
		return 1
	}
	binary = filepath.Join(dir, "diwan")
	return m.Run()
}

// server is a `diwan up` on a home, which tests may kill and start again.
type server struct {
	t    testing.TB
	home string
	args []string // more arguments of `diwan up`
	user bool     // run it as an ordinary user, who owns the home
	pull bool     // images that nothing maps are pulled; else they stand for this machine
	cmd  *exec.Cmd
	log  *lockedBuffer
}

// newServer starts `diwan up`, with more arguments, on a new home; it stops when
// the test ends.
func newServer(t testing.TB, args ...string) *server {
	t.Helper()
	return newServerOn(t, t.TempDir(), args...)
}

// newServerOn starts `diwan up` on a home.
func newServerOn(t testing.TB, home string, args ...string) *server {
	t.Helper()
	s := &server{t: t, home: home, args: args}
	s.begin()
	return s
}

// begin starts the process for the time of the test.
func (s *server) begin() {
	t := s.t
	t.Helper()
	s.start()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("diwan up said:\n%s", s.log)
			s.keepLog()
		}
		killed := s.cmd.ProcessState != nil
		s.stop()
		s.noProcessLeft()
		s.noKeeperLeft()
		if !killed {
			s.nothingLeft()
		}
	})
}

// mapsToMachine has images that nothing else maps stand for this machine: tests name
// images that nobody has.
func (s *server) mapsToMachine() {
	s.t.Helper()
	if err := os.MkdirAll(s.home, 0o700); err != nil {
		s.t.Fatal(err)
	}
	table := filepath.Join(s.home, "images.yaml")
	if _, err := os.Stat(table); err == nil {
		return
	}
	if err := os.WriteFile(table, []byte("images: [{image: '*', runtime: process}]\n"), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// start starts the process and waits until it says that it is ready.
func (s *server) start() {
	s.t.Helper()
	s.log = &lockedBuffer{}
	if !s.pull {
		s.mapsToMachine()
	}
	s.cmd = exec.Command(binary, append([]string{"up", "--home", s.home}, s.args...)...)
	if s.user {
		s.cmd = rootlesstest.Command(s.t, s.home, binary, s.cmd.Args[1:]...)
	}
	s.cmd.Stderr = s.log
	if s.cmd.SysProcAttr == nil {
		s.cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	s.cmd.SysProcAttr.Setpgid = true
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ready := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			fmt.Fprintln(s.log, lines.Text())
			if strings.Contains(lines.Text(), "ready") {
				ready <- true
			}
		}
		close(ready)
	}()
	select {
	case ok := <-ready:
		if !ok {
			s.t.Fatalf("diwan up ended before it was ready:\n%s", s.log)
		}
	case <-time.After(2 * time.Minute):
		s.t.Fatalf("diwan up is not ready after two minutes:\n%s", s.log)
	}
}

// kill ends the process as a power cut would, with no chance to tidy up.
func (s *server) kill() {
	s.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	_ = s.cmd.Wait()
}

// stop asks the process to end and waits.
func (s *server) stop() {
	s.t.Helper()
	if s.cmd.ProcessState != nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("diwan up ended with %v:\n%s", err, s.log)
	}
}

// part is a test that runs beside others on one server.
type part func(name string, test func(*testing.T, *server))

// parts runs tests on the server, four at a time, and waits for them. They run in the place that t holds among the
// package's parallel tests. Had they called t.Parallel, t would have given it up: every other test would start its
// server, and keep it, before the parts of the first had their turn.
func (s *server) parts(t *testing.T, list func(part)) {
	t.Helper()
	places := make(chan struct{}, 4)
	var running sync.WaitGroup
	defer running.Wait()
	list(func(name string, test func(*testing.T, *server)) {
		running.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			t.Run(name, func(t *testing.T) {
				own := *s
				own.t = t
				test(t, &own)
			})
		})
	})
}

// alive fails the test when the server ended.
func (s *server) alive() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.Signal(0)); err != nil {
		s.t.Fatalf("diwan up ended: %v\n%s", err, s.log)
	}
}

// noProcessLeft looks for processes that the home's containers left behind.
func (s *server) noProcessLeft() {
	s.t.Helper()
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environments {
		text, err := os.ReadFile(path)
		if err == nil && bytes.Contains(text, []byte("DIWAN_CONTAINER_ID=")) && bytes.Contains(text, []byte(s.home)) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			s.t.Errorf("process %s is left: %q", filepath.Dir(path), bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		}
	}
}

// noKeeperLeft looks for keepers of the home's containers.
func (s *server) noKeeperLeft() {
	s.t.Helper()
	files, _ := filepath.Glob("/proc/[0-9]*/fd/3")
	for _, path := range files {
		if file, err := os.Readlink(path); err == nil && strings.HasPrefix(file, s.home) && filepath.Base(file) == "keeper" {
			s.t.Errorf("the keeper %s is left", filepath.Dir(filepath.Dir(path)))
		}
	}
}

// nothingLeft looks for the home's bridge and cgroups, which a stop removes,
// also one with Pods running.
func (s *server) nothingLeft() {
	s.t.Helper()
	plan, err := network.PlanFor(s.home)
	if err != nil {
		s.t.Error(err)
		return
	}
	group := cgroup.Name(filepath.Join(s.home, "node", "pods"))
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == group {
			s.t.Errorf("the control group %s is left", path)
		}
		return nil
	})
	// A Pod's own device goes when the kernel gives up the connections that the Pod left open.
	if bridge, err := net.InterfaceByName("diwan-" + plan.ID); err == nil {
		s.t.Errorf("the network device %s is left", bridge.Name)
	}
}

// keepLog copies the server's log out of the test's directory, which is removed.
func (s *server) keepLog() {
	text, err := os.ReadFile(filepath.Join(s.home, "diwan.log"))
	if err != nil {
		return
	}
	path := filepath.Join(os.TempDir(), "diwan-e2e-"+strings.ReplaceAll(s.t.Name(), "/", "-")+".log")
	if os.WriteFile(path, text, 0o600) == nil {
		s.t.Logf("the server's log is kept in %s", path)
	}
}

// config is the owner's way in.
func (s *server) config() *rest.Config {
	s.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(s.home, "kubeconfig"))
	if err != nil {
		s.t.Fatal(err)
	}
	config.QPS = -1
	return config
}

// client reads and writes any kind.
func (s *server) client() dynamic.Interface {
	s.t.Helper()
	client, err := dynamic.NewForConfig(s.config())
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// diwan runs the binary on the server's home, as the user who owns that, and
// returns what it printed.
func (s *server) diwan(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	if s.user {
		return printed(s.t, s.home, rootlesstest.Command(s.t, s.home, binary, args...))
	}
	return diwan(s.t, s.home, args...)
}

// diwan runs the binary on a home and returns what it printed.
func diwan(t testing.TB, home string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = os.Environ()
	return printed(t, home, cmd)
}

// printed runs diwan on a home in the module's directory and returns what it
// printed.
func printed(t testing.TB, home string, cmd *exec.Cmd) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Env = append(cmd.Env, "DIWAN_HOME="+home)
	cmd.Dir = root
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	end := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	if !end() {
		t.Fatalf("%s did not end:\n%s%s", strings.Join(cmd.Args, " "), &out, &errs)
	}
	if _, exit := err.(*exec.ExitError); err != nil && !exit {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

var (
	experiments = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1beta1", Resource: "experiments"}
	trials      = experiments.GroupVersion().WithResource("trials")
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	events      = schema.GroupVersionResource{Version: "v1", Resource: "events"}
)

// eventually waits until what returns nil, and fails with its last error.
func eventually(t testing.TB, within time.Duration, what func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := what()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %v", within, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// condition returns the reason and message of a condition that is True.
func condition(object *unstructured.Unstructured, kind string) (reason, message string, ok bool) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		if c["type"] == kind && c["status"] == "True" {
			reason, _ = c["reason"].(string)
			message, _ = c["message"].(string)
			return reason, message, true
		}
	}
	return "", "", false
}

// ended waits until an experiment has succeeded or failed and returns it.
func (s *server) ended(namespace, name string, within time.Duration) *unstructured.Unstructured {
	s.t.Helper()
	var object *unstructured.Unstructured
	client := s.client().Resource(experiments).Namespace(namespace)
	eventually(s.t, within, func() error {
		var err error
		if object, err = client.Get(s.t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		for _, kind := range []string{"Succeeded", "Failed"} {
			if _, _, ok := condition(object, kind); ok {
				return nil
			}
		}
		return fmt.Errorf("experiment %s has not ended: %v", name, object.Object["status"])
	})
	return object
}

// lockedBuffer collects what several goroutines write.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// get reads an object of the namespace default.
func (s *server) get(resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	s.t.Helper()
	object, err := s.client().Resource(resource).Namespace("default").Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return object
}
