// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"diwan.dev/diwan/internal/platform/node/capability"
	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/keeper"
	"diwan.dev/diwan/internal/platform/node/rootless"
	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
	"diwan.dev/diwan/internal/platform/node/seccomp"
)

// ownerEnv makes the test binary a process that owns a runtime.
const ownerEnv = "DIWAN_TEST_SANDBOX_OWNER"

func TestMain(m *testing.M) {
	if os.Args[0] == keeper.Name {
		os.Exit(keeper.Main(os.Args[1:]))
	}
	if dir := os.Getenv(ownerEnv); dir != "" {
		own(dir)
		return
	}
	if err := rootless.Enter(nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

func testConfig(dir string) Config {
	cfg := DefaultConfig(dir)
	var err error
	if cfg.Keeper, err = os.Executable(); err != nil {
		panic(err)
	}
	return cfg
}

// tempDir is a directory that containers may be passed through to: that of the testing
// package is for one user alone.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "diwan-sandbox-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func newRuntime(t testing.TB, change ...func(*Config)) *Runtime {
	t.Helper()
	rootlesstest.NeedNamespaces(t)
	cfg := testConfig(filepath.Join(tempDir(t), "pods"))
	for _, f := range change {
		f(&cfg)
	}
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// applets are the programs that are links to busybox in the test's images.
var applets = strings.Fields("sh cat echo ls id env pwd sleep true false touch mkdir rm ln stat hostname grep ps kill mount umount mknod dd wc stty tty readlink head tail sort chown chmod ip date sync test printf seq tr cut mv cp nproc dmesg su unshare sysctl find xargs expr")

// image is a layer with busybox, in a directory of its own.
func image(t testing.TB) string {
	t.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("busybox is missing: install busybox-static")
		}
		t.Skip("this test needs busybox: install busybox-static")
	}
	layer := filepath.Join(tempDir(t), "layer")
	for _, dir := range []string{"bin", "tmp", "etc"} {
		if err := os.MkdirAll(filepath.Join(layer, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(layer, "tmp"), 0o1777); err != nil {
		t.Fatal(err)
	}
	copyProgram(t, filepath.Join(layer, "bin/busybox"), busybox)
	for _, name := range applets {
		if err := os.Symlink("busybox", filepath.Join(layer, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	return layer
}

// copyProgram copies a file that is to be executed. A child that is forked meanwhile would
// have it open too, and then nobody can execute it.
func copyProgram(t testing.TB, to, from string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err == nil {
		_, err = io.Copy(out, in)
		out.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

var serial atomic.Int64

// security is what a container has that asks for nothing.
func security(t testing.TB) *container.Security {
	t.Helper()
	caps := capability.Default()
	machine, err := seccomp.ThisMachine(caps.Names())
	if err != nil {
		t.Fatal(err)
	}
	program, _, err := seccomp.Select(nil, "", machine)
	if err != nil {
		t.Fatal(err)
	}
	return &container.Security{
		Capabilities: caps, Seccomp: program.Bytes(), SeccompFlags: program.Flags, Masked: DefaultMasked(), ReadOnly: DefaultReadOnly(),
	}
}

func specFor(t testing.TB, args ...string) container.Spec {
	t.Helper()
	return container.Spec{
		ID:       container.ID{Pod: fmt.Sprintf("pod-%d-%d", os.Getpid(), serial.Add(1)), Name: "main"},
		Args:     args,
		Env:      []string{"PATH=/bin", "HOME=/"},
		Dir:      "/",
		Root:     &container.Root{Layers: []string{image(t)}},
		Security: security(t),
		Log:      filepath.Join(tempDir(t), "0.log"),
	}
}

func openLog(t testing.TB, spec container.Spec) *os.File {
	t.Helper()
	out, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func start(t testing.TB, r *Runtime, spec container.Spec) container.Run {
	t.Helper()
	out := openLog(t, spec)
	defer out.Close()
	run, err := r.Start(t.Context(), spec, out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		run.Kill()
		<-run.Done()
		if err := run.Remove(); err != nil {
			t.Error(err)
		}
	})
	return run
}

func await(t testing.TB, run container.Run) container.Exit {
	t.Helper()
	select {
	case <-run.Done():
	case <-time.After(time.Minute):
		t.Fatalf("%s does not end", run.Spec().ID)
	}
	return run.Exit()
}

// output runs a container to its end and returns its output and exit.
func output(t testing.TB, r *Runtime, spec container.Spec) (string, container.Exit) {
	t.Helper()
	exit := await(t, start(t, r, spec))
	text, err := os.ReadFile(spec.Log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), exit
}

// awaitText waits until the log holds text.
func awaitText(t testing.TB, log, text string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if have, err := os.ReadFile(log); err == nil && strings.Contains(string(have), text) {
			return string(have)
		}
	}
	have, _ := os.ReadFile(log)
	t.Fatalf("%q does not appear in the log; it holds %q", text, have)
	return ""
}

// execute runs a command beside a run.
func execute(t testing.TB, run container.Run, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run.Exec(t.Context(), args, container.Streams{Stdout: &out, Stderr: &out})
	return out.String(), err
}

// own is what a process does that owns a runtime: it starts the runs that it reads, says
// so, and waits to be killed.
func own(dir string) {
	r, err := New(testConfig(dir))
	if err != nil {
		panic(err)
	}
	for in := json.NewDecoder(os.Stdin); ; {
		var spec container.Spec
		if in.Decode(&spec) != nil {
			select {}
		}
		out, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		run, err := r.Start(context.Background(), spec, out)
		if err != nil {
			panic(err)
		}
		if spec.Restarts > 0 { // it is to be ended, too
			run.Kill()
			<-run.Done()
			run.Remove()
		}
		fmt.Println("started")
	}
}
