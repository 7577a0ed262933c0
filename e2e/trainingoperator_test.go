// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
)

// trainingOperatorExample is a job of the training operator's examples.
type trainingOperatorExample struct {
	file, namespace, job string
	replicas             int
	pods                 []string // that say how many they met
}

// trainingExamples are the training operator's examples.
func trainingExamples() []trainingOperatorExample {
	return []trainingOperatorExample{
		{"jax-simple", "kubeflow", "jaxjob-simple", 2, []string{"worker-0", "worker-1"}},
		{"jax-dist-spmd-mnist", "kubeflow", "jaxjob-mnist", 2, []string{"worker-0", "worker-1"}},
		{"pytorch-simple", "kubeflow", "pytorch-simple", 2, []string{"master-0", "worker-0"}},
		{"pytorch-sendrecv", "default", "pytorch-dist-basic-sendrecv", 4, []string{"master-0", "worker-0", "worker-1", "worker-2"}},
		{"tensorflow-simple", "kubeflow", "tfjob-simple", 2, []string{"worker-0", "worker-1"}},
		{"tensorflow-dist-mnist", "default", "dist-mnist-for-e2e-test", 4, []string{"chief-0", "ps-0", "worker-0", "worker-1"}},
		{"xgboost-iris-train", "default", "xgboost-dist-iris-test-train", 3, []string{"master-0", "worker-0", "worker-1"}},
		{"xgboost-rabit", "default", "xgboost-dist-test", 3, []string{"master-0", "worker-0", "worker-1"}},
		{"lightgbm-dist", "default", "lightgbm-dist-train-test", 3, []string{"master-0", "worker-0", "worker-1"}},
		{"paddle-simple-cpu", "kubeflow", "paddle-simple-cpu", 2, []string{"worker-0", "worker-1"}},
		{"mpi-tensorflow-mnist", "default", "tensorflow-mnist", 2, []string{"launcher"}},
	}
}

// TestTrainingOperatorExamples gives the training operator's examples to the
// platform as they are. Their images are mapped to a program whose replicas must
// find each other by what the operator tells them.
func TestTrainingOperatorExamples(t *testing.T) {
	t.Parallel()
	rootlesstest.NeedNamespaces(t)   // replicas of a job listen on the same port
	s := newServer(t, "--cpus", "8") // upstream asks for up to five
	meet := abs(t, "testdata/meet")
	program := filepath.Join(meet, "meet.py")
	path := filepath.Dir(environment(t, "tensorboard.txt")) // it has python as well as python3
	for _, image := range []string{"jaxjob-dist-spmd-mnist", "pytorch-dist-sendrecv-test", "tf-dist-mnist-test", "xgboost-dist-iris", "xgboost-dist-rabit-test", "lightgbm-dist-py-test"} {
		s.mapped(t, "ghcr.io/kubeflow/training-v1/"+image, "--path", path, "--command", "python3", "--", program)
	}
	s.mapped(t, "ghcr.io/kubeflow/training-v1/jaxjob-simple", "--path", path, "--file", "/opt/jax/train.py="+program, "--workdir", "/opt/jax")
	s.mapped(t, "ghcr.io/kubeflow/training-v1/tf-mnist-with-summaries", "--path", path, "--file", "/var/tf_mnist/mnist_with_summaries.py="+program)
	s.mapped(t, "docker.io/kubeflowkatib/pytorch-mnist", "--path", path, "--file", "/opt/pytorch-mnist/mnist.py="+program)
	s.mapped(t, "horovod/horovod", "--path", path, "--file", "/horovod/examples/tensorflow2/tensorflow2_mnist.py="+program)
	s.mapped(t, "registry.baidubce.com/paddlepaddle/paddle", "--path", path, "--workdir", meet)
	s.parts(t, func(part part) {
		for _, c := range trainingExamples() {
			part(c.file, func(t *testing.T, s *server) {
				needsProgram(t, c.file)
				if stdout, stderr, code := s.diwan("run", "-o", "json", abs(t, root+"/examples/training-operator/"+c.file+".yaml")); code != 0 {
					t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
				}
				for _, pod := range c.pods {
					stdout, stderr, _ := s.diwan("kubectl", "logs", "-n", c.namespace, c.job+"-"+pod)
					if want := fmt.Sprintf("met=%d\n", c.replicas); !strings.Contains(stdout, want) {
						t.Errorf("%s printed %q, want %q in it\n%s", pod, stdout, want, stderr)
					}
				}
			})
		}
	})
}
