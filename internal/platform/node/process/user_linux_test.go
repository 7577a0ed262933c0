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
	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/rootless"
	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
)

func TestAsAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	rootlesstest.Again(t, "TestMount|TestSources|TestServiceAccounts|TestUser|TestExec|TestKilledOwner")
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
	if err := run.Kill(); err != nil {
		t.Fatal(err)
	}
	<-run.Done()
}

// TestUserHasOtherIDs gives a user's run the ids of another: it and what is executed
// beside it see them, also as the owner of the user's files, and have no right more.
func TestUserHasOtherIDs(t *testing.T) {
	t.Parallel()
	owner, ok := rootless.Owner()
	if !ok {
		t.Skip("this test is of an ordinary user in a user namespace")
	}
	r := newRuntime(t, modes["as the machine allows"])
	const look = `echo $(id -u) $(id -g) $(stat -c %u:%g .) $(grep CapEff /proc/self/status); `
	spec := specFor(t, r, "sh", "-c", look+`echo >made; echo ready; sleep 60`)
	spec.User = &container.User{UID: 12345, GID: 54321}
	run := start(t, r, spec)
	awaitText(t, spec.Log, "ready\n")
	const want = "12345 54321 12345:54321 CapEff: 0000000000000000\n"
	if have, _ := os.ReadFile(spec.Log); string(have) != want+"ready\n" {
		t.Errorf("the program sees %q, want %q", have, want)
	}
	var out bytes.Buffer
	if err := run.Exec(t.Context(), []string{"sh", "-c", look}, container.Streams{Stdout: &out}); err != nil || out.String() != want {
		t.Errorf("a command beside the program sees %q, %v, want %q", out.String(), err, want)
	}
	// Root of this namespace is the user of the machine.
	var made unix.Stat_t
	if err := unix.Stat(filepath.Join(spec.Dir, "made"), &made); err != nil || made.Uid != 0 || made.Gid != 0 {
		t.Errorf("what the program made belongs to %d:%d here, %v; want the user, %d", made.Uid, made.Gid, err, owner.UID)
	}
	if err := run.Kill(); err != nil {
		t.Fatal(err)
	}
	<-run.Done()
}
