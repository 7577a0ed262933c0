// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/internal/platform/node/image"
)

// testExamples runs the examples of collectors and of early stopping, and wants
// the observations that they have on a laptop.
func (f *foreign) testExamples(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil && os.Getenv("CI") == "" {
		t.Skip("python3 is not installed")
	}
	python, directory := environment(t, "tensorboard.txt"), abs(t, root+"/examples/collectors")
	f.cluster.Map(image.Entry{Image: "example.com/tensorboard", Path: []string{filepath.Dir(python)}, WorkingDir: directory})
	f.cluster.Map(image.Entry{Image: image.Host, WorkingDir: directory})
	f.namespace("examples")
	manifests := []string{stoppingExample(t)}
	for _, name := range []string{"tensorflow-event.yaml", "prometheus.yaml"} {
		text, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, string(text))
	}
	for _, manifest := range manifests {
		if err := create(t.Context(), f.any, "examples", manifest); err != nil {
			t.Fatal(err)
		}
	}
	checkEvents(t, f.succeeded(t, "examples", "events", 2*time.Minute))
	checkServed(t, f.succeeded(t, "examples", "served", 2*time.Minute))
	f.succeeded(t, "examples", "digits-stopping", 5*time.Minute)
	ended, err := f.any.Resource(experiments).Namespace("examples").Get(t.Context(), "digits-stopping", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	checkStoppingExample(t, ended)
}
