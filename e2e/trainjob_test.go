// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// TestTrainJobs runs the examples with TrainJobs: a training on two nodes, a
// search over such trainings, both as their pages show it, and one whose data
// are fetched first.
func TestTrainJobs(t *testing.T) {
	t.Parallel()
	s := newServerOn(t, homeWithEnvironments(t))
	r := newReader(t)
	r.env = append(r.env, "DIWAN_HOME="+s.home)
	run := func(file string) {
		t.Helper()
		if out, stderr, code := s.diwan("run", file); code != 0 {
			t.Fatalf("diwan run %s: exit code %d\n%s%s", file, code, out, stderr)
		}
	}

	follow(r, "examples/trainjob/README.md")
	log := s.kubectl(t, "logs", "-l", "jobset.sigs.k8s.io/jobset-name=digits")
	if got := accuracy(t, log); got < 0.93 {
		t.Errorf("the accuracy is %v:\n%s", got, log)
	}
	for _, want := range []string{"node 0 of 2 has seen 719 digits", "node 1 of 2 has seen 718 digits"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}

	t.Run("torch", func(t *testing.T) {
		needs(t, "/usr/bin/torchrun", "torch")
		s.mapped(t, "pytorch/pytorch", debianTorch...)
		run(abs(t, "../examples/trainjob/torch.yaml"))
		for _, index := range []string{"0", "1"} {
			log := s.kubectl(t, "logs", "-l", "jobset.sigs.k8s.io/jobset-name=torch-digits,batch.kubernetes.io/job-completion-index="+index, "--tail=-1")
			if want := "rank " + index + " of 2 has trained on 719 rows"; accuracy(t, log) < 0.93 || !strings.Contains(log, want) {
				t.Errorf("the accuracy is %v, and the log has no %q:\n%s", accuracy(t, log), want, log)
			}
		}
	})

	run(abs(t, "../examples/jobset/jobset.yaml"))
	if log := s.kubectl(t, "logs", "-l", "jobset.sigs.k8s.io/jobset-name=seeds"); strings.Count(log, "epoch 3 ") != 3 {
		t.Errorf("three trainings printed:\n%s", log)
	}

	follow(r, "examples/optimizationjob/README.md")
	var search struct {
		Status struct {
			Result struct {
				TrainJobName string
				Parameters   []struct{ Name, Value string }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(s.kubectl(t, "get", "optimizationjob", "digits", "-o", "yaml")), &search); err != nil {
		t.Fatal(err)
	}
	best := search.Status.Result
	if len(best.Parameters) != 2 || best.TrainJobName == "" {
		t.Fatalf("the result is %+v", best)
	}
	log = s.kubectl(t, "logs", "-l", "jobset.sigs.k8s.io/jobset-name="+best.TrainJobName)
	if got := accuracy(t, log); got < 0.85 {
		t.Errorf("the best accuracy is %v:\n%s", got, log)
	}

	text, err := os.ReadFile("../examples/trainjob/initializer.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "initializer.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "/srv/digits", abs(t, "../examples/quickstart"))), 0o644); err != nil {
		t.Fatal(err)
	}
	run(file)
	if log := s.kubectl(t, "logs", "-l", "jobset.sigs.k8s.io/jobset-name=fetched,jobset.sigs.k8s.io/replicatedjob-name=node"); !strings.Contains(log, "1797 lines of data") {
		t.Errorf("the log is:\n%s", log)
	}
}

// homeWithEnvironments is a new home whose Python environments are kept in the
// user's cache, as those of other tests are.
func homeWithEnvironments(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	home, environments := t.TempDir(), filepath.Join(cache, "diwan", "e2e", "environments")
	for _, err := range []error{os.MkdirAll(environments, 0o755), os.Symlink(environments, filepath.Join(home, "environments"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// follow tries the commands of a page that has Python packages installed. Where
// they cannot be, the test is skipped, unless CI is set.
func follow(r *reader, document string) {
	r.t.Helper()
	for _, command := range commandsOf(r.t, document) {
		ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Minute)
		out, err := r.command(ctx, command).CombinedOutput()
		cancel()
		switch {
		case err == nil:
		case strings.Contains(string(out), "cannot build its Python environment") && os.Getenv("CI") == "":
			r.t.Skipf("%s: %s: what it needs cannot be installed\n%s", document, command, out)
		default:
			r.t.Fatalf("%s: %s: %v\n%s", document, command, err, out)
		}
	}
}

var accuracies = regexp.MustCompile(`accuracy=([\d.]+)`)

// accuracy is what the last line about it in a log says.
func accuracy(t *testing.T, log string) float64 {
	t.Helper()
	found := accuracies.FindAllStringSubmatch(log, -1)
	if found == nil {
		t.Fatalf("the log tells no accuracy:\n%s", log)
	}
	v, err := strconv.ParseFloat(found[len(found)-1][1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// kubectl runs diwan kubectl and returns what it prints.
func (s *server) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, stderr, code := s.diwan(append([]string{"kubectl"}, args...)...)
	if code != 0 {
		t.Fatalf("diwan kubectl %v: exit code %d\n%s%s", args, code, out, stderr)
	}
	return out
}
