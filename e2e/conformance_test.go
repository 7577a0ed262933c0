// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
	"diwan.dev/diwan/internal/testing/testimage"
)

var (
	conformance      = flag.Bool("conformance", false, "build Kubernetes' own e2e.test, and run its conformance tests of nodes and storage")
	conformanceFocus = flag.String("conformance-focus", `\[sig-(node|storage)\].*\[Conformance\]`, "which of its tests to run")
	conformanceUser  = flag.Bool("conformance-user", false, "run Diwan as an ordinary user")
)

// TestConformance runs Kubernetes' own conformance tests of nodes and storage on a
// laptop, with the tests' images built here. testdata/conformance/exceptions names
// those that are expected to fail, with the reason: no other may, and none of these
// may pass.
func TestConformance(t *testing.T) {
	if !*conformance {
		t.Skip("runs with -conformance: it compiles for minutes and runs for an hour")
	}
	s := &server{t: t, home: t.TempDir()}
	if *conformanceUser {
		rootlesstest.Need(t)
		s = &server{t: t, home: rootlesstest.Home(t), user: true}
	}
	programs := conformancePrograms(t)
	conformanceImages(t, s.home, programs)
	s.begin()
	s.gives(t, "images", "map", "*", "--runtime", "image")

	report := filepath.Join(t.TempDir(), "junit.xml")
	cmd := exec.Command(filepath.Join(programs, "e2e.test"), "--provider=local", "--kubeconfig="+filepath.Join(s.home, "kubeconfig"),
		"--ginkgo.focus="+*conformanceFocus, "--ginkgo.junit-report="+report, "--ginkgo.no-color", "--ginkgo.timeout=3h",
		"--allowed-not-ready-nodes=0", "--disable-log-dump")
	log, err := os.Create(filepath.Join(os.TempDir(), "diwan-conformance.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	// It ends with an error if a test failed, which the report says better.
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	t.Logf("e2e.test's own log is kept in %s", log.Name())
	judgeConformance(t, report)
}

// conformancePrograms compiles e2e.test and agnhost of the Kubernetes that this
// module requires, and returns their directory. A module of its own adds what only
// they need.
func conformancePrograms(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	command := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	version := command(root, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	command(dir, "mod", "edit", "-module=conformance.test", "-require=k8s.io/sample-apiserver@"+strings.Replace(version, "v1.", "v0.", 1))
	command(dir, "build", "-mod=mod", "-o", "agnhost", "k8s.io/kubernetes/test/images/agnhost")
	command(dir, "test", "-mod=mod", "-c", "-o", "e2e.test", "k8s.io/kubernetes/test/e2e")
	return dir
}

// conformanceImages serves the images that the tests name, and has a home find them.
// They hold what those of Kubernetes hold as far as its tests use it: BusyBox for the
// shell, agnhost, the users of agnhost's image.
func conformanceImages(t *testing.T, home, programs string) {
	t.Helper()
	busybox := testimage.Busybox(t)
	list, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := []testimage.File{testimage.Dir("bin", 0o755), testimage.Dir("etc", 0o755), testimage.Dir("usr/bin", 0o755), testimage.Dir("root", 0o700),
		testimage.Dir("var", 0o755), testimage.Dir("home", 0o755), testimage.Dir("tmp", 0o1777), testimage.Dir("uploads", 0o777),
		testimage.Text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\nuser-defined-in-image:x:1000:1000::/home:/bin/sh\n"),
		testimage.Text("etc/group", "root:x:0:\nnobody:x:65534:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n"),
		testimage.Program(t, "bin/busybox", busybox)}
	for applet := range strings.FieldsSeq(string(list)) {
		if applet != "busybox" {
			files = append(files, testimage.Link("bin/"+applet, "busybox"))
		}
	}
	shell := testimage.Layer(t, files...)
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	agnhost := testimage.Image(t, v1.Config{Entrypoint: []string{"/agnhost"}, Cmd: []string{"pause"}, Env: env}, shell,
		testimage.Layer(t, testimage.Program(t, "agnhost", filepath.Join(programs, "agnhost")), testimage.Link("agnhost-2", "agnhost")))
	r := testimage.Serve(t, nil)
	out, err := exec.Command(filepath.Join(programs, "e2e.test"), "--list-images").Output()
	if err != nil {
		t.Fatal(err)
	}
	for image := range strings.FieldsSeq(string(out)) {
		_, reference, _ := strings.Cut(image, "/")
		switch {
		case strings.Contains(reference, "agnhost:"), strings.Contains(reference, "pause:"):
			r.Push(t, reference, agnhost)
		case strings.Contains(reference, "busybox:"), strings.Contains(reference, "nginx:"), strings.Contains(reference, "httpd:"):
			r.Push(t, reference, testimage.Image(t, v1.Config{Cmd: []string{"sh"}, Env: env}, shell))
		}
	}
	text := fmt.Sprintf("mirrors:\n- {prefix: registry.k8s.io, endpoints: [%q]}\n", r.Host)
	if err := os.WriteFile(filepath.Join(home, "registries.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// judgeConformance compares a JUnit report with the list of exceptions.
func judgeConformance(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Cases []struct {
			Name    string    `xml:"name,attr"`
			Skipped *struct{} `xml:"skipped"`
			Failure *struct {
				Message string `xml:"message,attr"`
			} `xml:"failure"`
		} `xml:"testsuite>testcase"`
	}
	if err := xml.NewDecoder(bytes.NewReader(text)).Decode(&report); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile("testdata/conformance/exceptions")
	if err != nil {
		t.Fatal(err)
	}
	expected := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			expected[line] = true
		}
	}
	labels := regexp.MustCompile(`^\[It\] | \[[^\]]*\]$`)
	passed := 0
	var names []string
	for _, c := range report.Cases {
		name := c.Name
		for labels.MatchString(name) {
			name = labels.ReplaceAllString(name, "")
		}
		switch {
		case !strings.HasPrefix(c.Name, "[It]") || c.Skipped != nil:
		case c.Failure == nil && expected[name]:
			t.Errorf("it passes, and is no exception any more: %s", name)
		case c.Failure == nil:
			passed++
		case !expected[name]:
			names = append(names, name)
			t.Errorf("it fails: %s\n\t%s", name, c.Failure.Message)
		}
	}
	if passed == 0 {
		t.Error("no test ran")
	}
	slices.Sort(names)
	t.Logf("%d tests passed, %d failed as expected, %d unexpectedly:\n%s", passed, len(expected), len(names), strings.Join(names, "\n"))
}
