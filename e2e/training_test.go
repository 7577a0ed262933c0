// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
)

// TestTrainingJobs trains on real data on several processes that find each other
// by the training operator's names, and uses its unmodified SDK.
func TestTrainingJobs(t *testing.T) {
	t.Parallel()
	rootlesstest.NeedNamespaces(t) // replicas of a job listen on the same port, for which each needs an address of its own
	python := environmentOf(t, "training", filepath.Join(root, "examples", "training", "requirements.txt"))
	sdk := sdks(t)
	s := newServer(t, "--cpus", "16") // jobs that hold places for others must not wait for each other
	s.mapped(t, "diwan.dev/examples/training", "--path", filepath.Dir(python))
	s.mapped(t, "docker.io/pytorch/pytorch", append([]string{"--path", filepath.Dir(sdk)}, debianTorch...)...)
	s.mapped(t, "docker.io/tensorflow/tensorflow", "--path", filepath.Dir(sdk))
	s.mapped(t, "diwan.dev/examples/tensorflow", "--path", filepath.Dir(environmentOf(t, "training", filepath.Join(root, "examples", "training", "tensorflow.txt"))))
	s.mapped(t, "diwan.dev/examples/pytorch", debianTorch...)
	s.parts(t, func(part part) {
		for _, job := range []struct {
			file, pod string
			accuracy  float64
		}{
			{"xgboostjob.yaml", "xgboost-digits-master-0", 0.94},
			{"jaxjob.yaml", "jax-digits-worker-0", 0.93},
			{"mpijob.yaml", "mpi-digits-launcher", 0.93},
			{"pytorchjob.yaml", "pytorch-digits-master-0", 0.93},
			{"tfjob.yaml", "tf-digits-worker-0", 0.93},
			{"tfjob-parameter-server.yaml", "tf-served-chief-0", 0.85}, // asynchronous: it is never twice the same
			{"mxjob.yaml", "mx-digits-worker-1", 0.9},
		} {
			part(job.file, func(t *testing.T, s *server) {
				needsProgram(t, job.file)
				s.trains(t, job.file, job.pod, job.accuracy)
			})
		}
		part("tune", func(t *testing.T, s *server) {
			s.succeeds(t, root+"/examples/training/tune-xgboost.yaml")
		})
		part("tune-pytorch", func(t *testing.T, s *server) {
			needs(t, "/usr/bin/torchrun", "torch")
			s.tuned(t)
		})
		for image, flags := range map[string][]string{
			"pytorch-mnist-cpu":       {"--file", "/opt/pytorch-mnist=" + abs(t, "testdata/mnist")},
			"tf-mnist-with-summaries": {"--file", "/opt/tf-mnist-with-summaries=" + abs(t, "testdata/summaries"), "--path", filepath.Dir(environment(t, "tensorboard.txt"))},
			"xgboost-lightgbm":        {"--command", "python3", "--", abs(t, "testdata/lightgbm/train.py")},
		} {
			s.mapped(t, "ghcr.io/kubeflow/katib/"+image, flags...)
		}
		s.mapped(t, "docker.io/kubeflow/mpi-horovod-mnist", "--file", "/examples="+abs(t, "testdata/horovod"), "--path", filepath.Dir(sdk))
		for _, file := range []string{"pytorchjob-mnist.yaml", "tfjob-mnist-with-summaries.yaml", "xgboostjob-lightgbm.yaml", "mpijob-horovod.yaml"} {
			part(file, func(t *testing.T, s *server) {
				needsProgram(t, file)
				s.succeeds(t, root+"/examples/katib/other-kinds/"+file)
			})
		}
		part("elastic", func(t *testing.T, s *server) {
			s.scales(t)
		})
		part("discovery", func(t *testing.T, s *server) {
			s.discoversHosts(t)
		})
		part("sdk", func(t *testing.T, s *server) {
			s.python(t, sdk, "training_client.py")
		})
		part("functions", func(t *testing.T, s *server) {
			needs(t, "/usr/bin/torchrun", "torch")
			s.python(t, sdk, "torch_client.py")
		})
		part("models", func(t *testing.T, s *server) {
			s.finetunes(t)
		})
	})
	s.vanishes(t, "training.kubeflow.org/job-name=tf-served,training.kubeflow.org/replica-type!=chief")
	s.cleans(t)
}

// debianTorch maps an image to PyTorch from Debian's packages. Its torchrun does
// not know its own default of what becomes of output, because of an enumeration
// that is another in Python 3.11: the variables say the same in other words.
var debianTorch = []string{"--path", "/usr/bin", "--env", "PET_REDIRECTS=9:1", "--env", "PET_TEE=9:1"}

// needsProgram skips an example whose program is not installed.
func needsProgram(t *testing.T, file string) {
	t.Helper()
	for prefix, need := range map[string][2]string{"mpi": {"mpirun", "mpi"}, "pytorchjob.yaml": {"/usr/bin/torchrun", "torch"}} {
		if strings.HasPrefix(file, prefix) {
			needs(t, need[0], need[1])
		}
	}
}

// needs skips what needs a program that a target of the Makefile installs.
func needs(t *testing.T, program, target string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is not installed: run `make %s`", program, target)
	}
	t.Skipf("%s is not installed: run `make %s`", program, target)
}

// trains runs an example, whose model must come to an accuracy by what a Pod of
// it prints.
func (s *server) trains(t *testing.T, file, pod string, least float64) {
	t.Helper()
	if stdout, stderr, code := s.diwan("run", abs(t, root+"/examples/training/"+file)); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if got := accuracy(t, s.gives(t, "logs", pod)); got < least {
		t.Errorf("%s came to an accuracy of %v, want %v", file, got, least)
	}
}

// finetunes has the SDK tune a model, by images that stand for the training
// operator's. The SDK's packages of Hugging Face need PyTorch, which is Debian's:
// so they are installed without what they need, and used by Debian's Python.
func (s *server) finetunes(t *testing.T) {
	t.Helper()
	needs(t, "/usr/bin/torchrun", "torch")
	packages, err := filepath.Glob(filepath.Join(environmentOf(t, "sdks", filepath.Join("testdata", "python", "huggingface.txt"), "--no-deps"), "../../lib/python3*/site-packages"))
	if err != nil || len(packages) != 1 {
		t.Fatalf("the packages of the environment are at %v (%v)", packages, err)
	}
	for image, command := range map[string][]string{"storage-initializer": {"python3", "storage.py"}, "trainer-huggingface": {"torchrun", "trainer.py"}} {
		flags := slices.Concat(debianTorch, []string{"--command", command[0], "--", abs(t, filepath.Join("testdata", "finetune", command[1]))})
		s.mapped(t, "docker.io/kubeflow/"+image, flags...)
	}
	s.python(t, "/usr/bin/python3", "train_client.py", "PYTHONPATH="+packages[0])
}

// cleans fails a job in each way that cleans up, and wants nothing left but what
// it printed.
func (s *server) cleans(t *testing.T) {
	t.Helper()
	s.apply(t, `
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: retried}
spec:
  runPolicy: {cleanPodPolicy: All, backoffLimit: 1, restartScope: Job}
  pytorchReplicaSpecs:
    Master: {replicas: 1, restartPolicy: ExitCode, template: {spec: {containers: [{name: pytorch, image: i, command: [sh, -c, "echo rank $RANK; exec sleep 1000"]}]}}}
    Worker: {replicas: 1, restartPolicy: ExitCode, template: {spec: {containers: [{name: pytorch, image: i, command: [sh, -c, "echo rank $RANK; exit 137"]}]}}}
---
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: late}
spec:
  runPolicy: {cleanPodPolicy: All, activeDeadlineSeconds: 2}
  tfReplicaSpecs:
    Worker: {replicas: 2, template: {spec: {containers: [{name: tensorflow, image: i, command: [sleep, "1000"]}]}}}
`)
	for job, message := range map[string]string{"pytorchjob/retried": "backoff limit", "tfjob/late": "longer than specified deadline"} {
		if _, stderr, code := s.diwan("kubectl", "wait", "--for=condition=Failed", "--timeout=60s", job); code != 0 {
			t.Fatalf("%s does not fail: %s", job, stderr)
		}
		stdout, _, _ := s.diwan("kubectl", "get", job, "-o", "jsonpath={.status.restarts} {.status.conditions[-1:].message}")
		if !strings.Contains(stdout, message) || strings.HasPrefix(job, "pytorch") && !strings.HasPrefix(stdout, "1 ") {
			t.Errorf("%s failed with %q, want %q in it", job, stdout, message)
		}
	}
	s.vanishes(t, "training.kubeflow.org/job-name in (retried,late)")
	for _, run := range []string{"pytorch", "pytorch.previous"} {
		logs, _ := filepath.Glob(filepath.Join(s.home, "logs", "default", "retried-worker-0", run, "*.log"))
		if len(logs) == 0 {
			t.Fatal("the log of a Pod that was cleaned up is gone: " + run)
		}
		if text, err := os.ReadFile(logs[0]); err != nil || !strings.Contains(string(text), "rank 1") {
			t.Errorf("the log of a Pod that was cleaned up is %q (%v)", text, err)
		}
	}
}

// vanishes waits until no Pod has certain labels.
func (s *server) vanishes(t *testing.T, labels string) {
	t.Helper()
	eventually(t, time.Minute, func() error {
		list, err := s.client().Resource(pods).Namespace("default").List(t.Context(), metav1.ListOptions{LabelSelector: labels})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d Pods with %s are left", len(list.Items), labels)
		}
		return err
	})
}
