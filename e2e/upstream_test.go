// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
)

// upstream has the end-to-end tests of Kubeflow's own projects run against the
// platform, unmodified. They take a quarter of an hour, and fetch their sources.
//
//	go test ./e2e -run TestUpstream -upstream -timeout 60m
var upstream = flag.Bool("upstream", false, "run the tests of Kubeflow's projects")

// TestUpstreamTrainingOperator runs the training operator's tests of its SDK:
// jobs of each kind, alone and as gangs of either scheduler's groups. Its images
// are mapped to a program whose replicas must find each other.
func TestUpstreamTrainingOperator(t *testing.T) {
	t.Parallel()
	needUpstream(t)
	needs(t, "/usr/bin/torchrun", "torch")
	needs(t, "mpirun", "mpi")
	python := environment(t, "upstream.txt")
	source := t.TempDir()
	output(t, exec.Command(python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", source, "kubeflow-training==1.9.0"))
	output(t, exec.Command("tar", "xzf", filepath.Join(source, "kubeflow-training-1.9.0.tar.gz"), "-C", source, "--strip-components=1"))
	for _, gang := range []struct{ name, scheduler string }{{"", ""}, {"scheduler-plugins", "scheduler-plugins-scheduler"}, {"volcano", "volcano"}} {
		t.Run("gang "+gang.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, "--cpus", "16", "--gang-scheduler-name", gang.scheduler)
			s.mapUpstream(t, filepath.Dir(python))
			cmd := exec.Command(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test/e2e")
			cmd.Dir = source
			cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(s.home, "kubeconfig"), "GANG_SCHEDULER_NAME="+gang.name, "PYTHONDONTWRITEBYTECODE=1")
			t.Log(output(t, cmd))
		})
	}
}

// mapUpstream maps the images of the training operator's tests.
func (s *server) mapUpstream(t *testing.T, path string) {
	t.Helper()
	program := abs(t, "testdata/meet/meet.py")
	for _, image := range []string{"kubeflow/pytorch-dist-mnist", "docker.io/kubeflow/xgboost-dist-iris", "docker.io/kubeflow/jaxjob-dist-spmd-mnist"} {
		s.mapped(t, image, "--path", path, "--command", "python3", "--", program)
	}
	s.mapped(t, "docker.io/hello-world", "--command", "echo", "--", "hello")
	s.mapped(t, "docker.io/pytorch/pytorch", debianTorch...)
	s.mapped(t, "gcr.io/kubeflow-ci/tf-mnist-with-summaries", "--path", path, "--file", "/var/tf_mnist/mnist_with_summaries.py="+program)
	s.mapped(t, "horovod/horovod", "--path", path, "--file", "/horovod/examples/pytorch/pytorch_mnist.py="+program)
	s.mapped(t, "docker.io/paddlepaddle/paddle", "--path", path, "--workdir", filepath.Dir(program))
}

// TestUpstreamTrainer runs Kubeflow Trainer's tests, but for those with Flux.
// What stands for its large images is made at first use, as those are pulled.
func TestUpstreamTrainer(t *testing.T) {
	t.Parallel()
	needUpstream(t)
	var module struct{ Dir string }
	fetched := output(t, exec.Command("go", "mod", "download", "-json", "github.com/kubeflow/trainer/v2@v2.3.0"))
	if err := json.Unmarshal([]byte(fetched), &module); err != nil {
		t.Fatal(err)
	}
	tests := filepath.Join(t.TempDir(), "trainer.test")
	output(t, exec.Command("go", "test", "-C", module.Dir, "-c", "-o", tests, "./test/e2e"))

	s := newServer(t, "--cpus", "16")
	pause := filepath.Join(t.TempDir(), "pause")
	if err := os.WriteFile(pause, []byte("#!/bin/sh\nexec sleep 100000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.mapped(t, "registry.k8s.io/pause", "--file", "/pause="+pause)
	for image, with := range map[string]string{"pytorch/pytorch": "six", "nvcr.io/nvidia/jax": "idna", "ghcr.io/kubeflow/trainer/xgboost-runtime": "toolz"} {
		s.mapped(t, image, "--package", with, "--command", "python3", "--", "-c", "")
	}
	s.mapped(t, "ghcr.io/kubeflow/trainer/deepspeed-runtime", "--path", "/usr/bin")
	cmd := exec.Command(tests, "--ginkgo.no-color", "--ginkgo.skip", "Flux")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(s.home, "kubeconfig"))
	t.Log(output(t, cmd))
}

func needUpstream(t *testing.T) {
	t.Helper()
	if !*upstream {
		t.Skip("takes long, and fetches Kubeflow's sources: give -upstream")
	}
	rootlesstest.NeedNamespaces(t) // replicas of a job listen on the same port
}

// output runs a program and returns what it prints.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s%s", cmd.Args, err, out.String(), errs.String())
	}
	return out.String()
}
