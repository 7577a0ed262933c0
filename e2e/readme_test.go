// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// documents are the pages whose commands are run, in the order in which a user reads them.
var documents = []string{"README.md", "docs/quickstart.md", "docs/running-on-your-laptop.md"}

// untried are the commands of the documents that are not run, and why.
var untried = map[string]string{
	"make build": "the tests build the binary themselves",
	"make test":  "it is what runs this",
	"python3 -m venv .venv && . .venv/bin/activate":                      "the tests have an environment, which is active",
	"pip install kubeflow-katib":                                         "it is installed there",
	"diwan run --context my-cluster examples/quickstart/experiment.yaml": "it needs a cluster, and an image on it",
	"bin/diwan run --context my-cluster my-experiment.yaml":              "it needs a cluster; the command line's own tests have one",
	"diwan kubectl run -it --rm shell --image=diwan.dev/host":            "it needs a terminal; TestCluster/interactive has one",
	"diwan kubectl debug -it POD --image=diwan.dev/host --target=main":   "it needs a terminal; TestCluster/debug has one",
}

// makeRun is what `make run` does with the binary that it has built.
const makeRun = "bin/diwan run examples/quickstart/experiment.yaml"

// myExperiment is what a user's own experiment is here.
const myExperiment = `
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: mine}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  maxTrialCount: 2
  parallelTrialCount: 2
  parameters: [{name: x, parameterType: double, feasibleSpace: {min: "0", max: "1"}}]
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: x, reference: x}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: diwan.dev/host, command: [echo, "loss=${trialParameters.x}"]}]}}}
`

// TestDocumentedCommands runs the commands of the user's documents as they are written there, one
// after another, in a directory that looks like the repository.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("python3 is not installed")
		}
		t.Skip("python3 is not installed")
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil || !strings.Contains(string(makefile), "run: build") || !strings.Contains(string(makefile), "\t"+makeRun) {
		t.Fatalf("make run does not run %q (%v)", makeRun, err)
	}
	newReader(t).follow(documents...)
}

// TestDocumentedPython runs the commands of the page on Python.
func TestDocumentedPython(t *testing.T) {
	t.Parallel()
	environment := filepath.Dir(filepath.Dir(sdks(t)))
	r := newReader(t)
	if err := os.Symlink(environment, filepath.Join(r.dir, ".venv")); err != nil {
		t.Fatal(err)
	}
	r.env = append(r.env, "PATH="+filepath.Join(r.dir, ".venv", "bin")+":"+filepath.Join(r.dir, "bin")+":"+os.Getenv("PATH"))
	r.follow("docs/python.md")
}

// follow tries the commands of documents, in the order in which they are written.
func (r *reader) follow(documents ...string) {
	r.t.Helper()
	for _, document := range documents {
		for _, command := range commandsOf(r.t, document) {
			if command == "make run" {
				command = makeRun
			}
			if untried[command] == "" {
				r.try(document, command)
			}
		}
		r.stop()
	}
}

// commandsOf returns the commands in the console blocks of a document: the lines that begin with "$ ".
func commandsOf(t *testing.T, document string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	console := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			console = line == "```console"
		} else if command, ok := strings.CutPrefix(line, "$ "); console && ok {
			command, _, _ = strings.Cut(command, " #")
			commands = append(commands, strings.TrimSpace(command))
		}
	}
	if len(commands) == 0 {
		t.Errorf("%s has no commands in console blocks", document)
	}
	return commands
}

// reader is a user who tries what is written.
type reader struct {
	t   *testing.T
	dir string
	env []string
	up  *exec.Cmd
	// said is what up has written to standard error.
	said bytes.Buffer
}

// newReader prepares a directory with the binary, the examples and an experiment of the user's.
func newReader(t *testing.T) *reader {
	t.Helper()
	r := &reader{t: t, dir: t.TempDir()}
	examples, err := filepath.Abs(filepath.Join(root, "examples"))
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(r.dir, "bin")
	home := filepath.Join(r.dir, "home")
	for _, err := range []error{
		os.Mkdir(bin, 0o755),
		os.Symlink(binary, filepath.Join(bin, "diwan")),
		os.Symlink(examples, filepath.Join(r.dir, "examples")),
		os.WriteFile(filepath.Join(r.dir, "my-experiment.yaml"), []byte(myExperiment), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r.env = append(os.Environ(), "DIWAN_HOME="+home, "PATH="+bin+":"+os.Getenv("PATH"))
	t.Cleanup(r.stop)
	return r
}

// try runs one command, and fails the test if it fails. One that keeps a cluster running goes on
// until stop.
func (r *reader) try(document, command string) {
	r.t.Helper()
	if command == "bin/diwan up" {
		r.start()
		return
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Minute)
	defer cancel()
	out, err := r.command(ctx, command).CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s: %s: %v\n%s", document, command, err, out)
	}
}

func (r *reader) command(ctx context.Context, command string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir, cmd.Env = r.dir, r.env
	cmd.WaitDelay = 10 * time.Second // its children may hold its output
	return cmd
}

// start runs `diwan up` until stop.
func (r *reader) start() {
	r.t.Helper()
	ready := filepath.Join(r.t.TempDir(), "up.txt") // a new one: what an earlier up wrote says nothing of this
	r.up = r.command(context.Background(), "exec bin/diwan up > "+ready)
	r.said.Reset()
	r.up.Stderr = &r.said
	if err := r.up.Start(); err != nil {
		r.t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if text, err := os.ReadFile(ready); err == nil && strings.Contains(string(text), "ready") {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatal("diwan up is not ready after two minutes")
		}
	}
}

// stop ends what start began.
func (r *reader) stop() {
	if r.up == nil {
		return
	}
	_ = r.up.Process.Signal(syscall.SIGINT)
	if err := r.up.Wait(); err != nil {
		r.t.Errorf("diwan up ended with %v\n%s", err, &r.said)
	}
	r.up = nil
}
