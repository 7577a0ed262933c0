// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestTrainJobs runs the examples with TrainJobs: a training on two nodes, a
// search over such trainings, and one whose data are fetched first.
func TestTrainJobs(t *testing.T) {
	t.Parallel()
	python := environment(t, "xgboost.txt")
	s := newServer(t)
	s.mapped(t, "ghcr.io/kubeflow/trainer/xgboost-runtime", "--path", filepath.Dir(python))
	run := func(file string) {
		t.Helper()
		if out, stderr, code := s.diwan("run", file); code != 0 {
			t.Fatalf("diwan run %s: exit code %d\n%s%s", file, code, out, stderr)
		}
	}

	run(abs(t, "../examples/trainjob/trainjob.yaml"))
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

	run(abs(t, "../examples/optimizationjob/optimizationjob.yaml"))
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
