// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/internal/node/container"
	"diwan.dev/diwan/internal/node/rootless"
	"diwan.dev/diwan/internal/node/rootless/rootlesstest"
)

func TestAsAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	rootlesstest.Again(t, "TestMount|TestServiceAccounts|TestUser|TestExec|TestKilledOwner")
}

// TestUserMountsAnywhere mounts where the user may make nothing: the machine is
// seen as it is but for the mounts, also by what is executed beside, and nothing is
// made on it.
func TestUserMountsAnywhere(t *testing.T) {
	t.Parallel()
	if _, ok := rootless.Owner(); !ok {
		t.Skip("this test is of an ordinary user in a user namespace")
	}
	r := newRuntime(t, modes["as the machine allows"])
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "file"), []byte("text\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("diwan-test-%d", os.Getpid())
	top := "/" + name + "/a/b" // last: when all of the machine is covered, all is inside
	targets := []string{"/var/run/" + name, "/usr/" + name, "/etc/" + name + "/file", "/run/secrets/kubernetes.io/" + name, "/root/" + name + "/a", top}
	spec := specFor(t, r, "sh", "-c", `
		cat $FILES
		for d in / /usr /etc; do echo $d $(ls $d | grep -v diwan-test- | wc -l); done
		echo x 2>/dev/null >/$NAME-made || echo cannot write to the root directory
		echo x >`+top+`/made; readlink /bin; echo ready; sleep 60`)
	var files []string
	for _, target := range targets {
		source := data
		if strings.HasSuffix(target, "/file") {
			source = filepath.Join(data, "file")
			files = append(files, target)
		} else {
			files = append(files, target+"/file")
		}
		spec.Mounts = append(spec.Mounts, container.Mount{Source: source, Target: target})
	}
	spec.Env = append(spec.Env, "FILES="+strings.Join(files, " "), "NAME="+name)
	run := start(t, r, spec)
	awaitText(t, spec.Log, "ready\n")
	want := strings.Repeat("text\n", len(targets))
	for _, dir := range []string{"/", "/usr", "/etc"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") && !strings.Contains(e.Name(), "diwan-test-") {
				n++
			}
		}
		want += fmt.Sprintln(dir, n)
	}
	bin, _ := os.Readlink("/bin")
	want += "cannot write to the root directory\n" + bin + "\nready\n"
	have, _ := os.ReadFile(spec.Log)
	if diff := cmp.Diff(want, string(have)); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	var out bytes.Buffer
	if err := run.Exec(t.Context(), []string{"cat", top + "/made"}, container.Streams{Stdout: &out}); err != nil || out.String() != "x\n" {
		t.Errorf("a command beside the program says %q, %v", out.String(), err)
	}
	for _, target := range targets {
		if _, err := os.Stat(target); err == nil {
			t.Errorf("%s is on the machine", target)
		}
	}
	if text, err := os.ReadFile(r.points.file); err == nil {
		t.Errorf("these are taken for mount points on the machine:\n%s", text)
	}
	if err := run.Kill(); err != nil {
		t.Fatal(err)
	}
	<-run.Done()
}
