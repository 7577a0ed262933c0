// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
	"diwan.dev/diwan/internal/testing/testimage"
)

// TestExamplesInImages runs examples of Katib and of the training operator as they are, in
// images with upstream's names and programs at upstream's paths, which a mirror has. Only
// the programs are others, since upstream's need gigabytes of frameworks.
func TestExamplesInImages(t *testing.T) {
	t.Parallel()
	t.Run("root", func(t *testing.T) {
		t.Parallel()
		if os.Getuid() != 0 {
			t.Skip("needs root")
		}
		withImages := slices.DeleteFunc(trainingExamples(), func(e trainingOperatorExample) bool {
			return strings.HasPrefix(e.file, "mpi") // its image would need MPI
		})
		runsExamplesInImages(t, &server{t: t, home: t.TempDir(), pull: true}, withImages)
	})
	t.Run("user", func(t *testing.T) {
		t.Parallel()
		rootlesstest.Need(t)
		rootlesstest.NeedNamespaces(t)
		runsExamplesInImages(t, &server{t: t, home: rootlesstest.Home(t), user: true, pull: true}, slices.DeleteFunc(trainingExamples(), func(e trainingOperatorExample) bool {
			return e.file != "pytorch-simple"
		}))
	})
}

// runsExamplesInImages runs one example of Katib, and those of the training operator.
func runsExamplesInImages(t *testing.T, s *server, examples []trainingOperatorExample) {
	serveUpstreamImages(t, s.home)
	s.args = []string{"--cpus", "8"} // upstream asks for up to five
	s.begin()
	s.gives(t, "images", "pull", "ghcr.io/kubeflow/training-v1/lightgbm-dist-py-test") // its manifest says that it is there
	// Its Pods go with their trials. The program that they ran is in the image alone.
	s.succeeds(t, root+"/examples/katib/jobs/random.yaml")
	for _, example := range examples {
		if stdout, stderr, code := s.diwan("run", "-o", "json", abs(t, root+"/examples/training-operator/"+example.file+".yaml")); code != 0 {
			t.Errorf("%s: exit code %d\n%s%s", example.file, code, stdout, stderr)
			continue
		}
		for _, pod := range example.pods {
			pod = example.job + "-" + pod
			stdout, stderr, _ := s.diwan("kubectl", "logs", "-n", example.namespace, pod)
			if want := fmt.Sprintf("met=%d\n", example.replicas); !strings.Contains(stdout, want) {
				t.Errorf("%s printed %q, want %q in it\n%s", pod, stdout, want, stderr)
			}
			if id := s.gives(t, "kubectl", "get", "pod", "-n", example.namespace, pod, "-o", "jsonpath={.status.containerStatuses[0].containerID}"); !strings.HasPrefix(id, "image://") {
				t.Errorf("%s ran as %s", pod, id)
			}
		}
	}
}

// serveUpstreamImages has a home find images with upstream's names at a mirror.
func serveUpstreamImages(t *testing.T, home string) {
	t.Helper()
	python := testimage.Layer(t, testimage.Python(t)...)
	shell := testimage.Layer(t, testimage.Shell(t)...)
	r := testimage.Serve(t, nil)
	push := func(name, programs, path string, entrypoint ...string) {
		var files []testimage.File
		for _, file := range filesIn(t, "testdata/"+programs) {
			files = append(files, testimage.Text(strings.TrimPrefix(path, "/")+strings.TrimPrefix(file, "testdata/"+programs), read(t, file)))
		}
		directory := path
		if strings.HasSuffix(path, ".py") {
			directory = filepath.Dir(path)
		}
		r.Push(t, name, testimage.Image(t, v1.Config{
			Entrypoint: entrypoint, Env: []string{"PATH=/usr/bin:/bin", "PYTHONUNBUFFERED=1"}, WorkingDir: directory,
		}, shell, python, testimage.Layer(t, files...)))
	}
	push("kubeflow/katib/pytorch-mnist-cpu:latest", "mnist/mnist.py", "/opt/pytorch-mnist/mnist.py")
	push("kubeflowkatib/pytorch-mnist:v1beta1-45c5727", "meet/meet.py", "/opt/pytorch-mnist/mnist.py")
	push("kubeflow/training-v1/jaxjob-simple:latest", "meet/meet.py", "/opt/jax/train.py")
	push("kubeflow/training-v1/tf-mnist-with-summaries:latest", "meet/meet.py", "/var/tf_mnist/mnist_with_summaries.py")
	push("paddlepaddle/paddle:2.4.0rc0-cpu", "meet", "/workspace")
	for _, name := range []string{"jaxjob-dist-spmd-mnist", "pytorch-dist-sendrecv-test", "tf-dist-mnist-test", "xgboost-dist-iris", "xgboost-dist-rabit-test", "lightgbm-dist-py-test"} {
		push("kubeflow/training-v1/"+name+":latest", "meet/meet.py", "/opt/train.py", "python3", "/opt/train.py")
	}
	mirrors := "mirrors:\n"
	for _, host := range []string{"docker.io", "ghcr.io", "registry.baidubce.com"} {
		mirrors += fmt.Sprintf("- {prefix: %s, endpoints: [%q]}\n", host, r.Host)
	}
	if err := os.WriteFile(filepath.Join(home, "registries.yaml"), []byte(mirrors), 0o644); err != nil {
		t.Fatal(err)
	}
}

// filesIn are the Python files of a directory, or a file itself.
func filesIn(t *testing.T, root string) []string {
	t.Helper()
	var files []string
	if err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".py") {
			files = append(files, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}
