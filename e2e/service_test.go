// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
	"diwan.dev/diwan/internal/testing/freeport"
)

// TestAlgorithmService runs the example of an algorithm service in Python, as
// its page says, and the same experiment by Diwan's own server.
func TestAlgorithmService(t *testing.T) {
	t.Parallel()
	python := sdks(t)
	example := filepath.Join(root, "examples", "algorithm-service")
	own := background(t, python, filepath.Join(example, "service.py"))
	served := background(t, binary, "algorithm-server", "--algorithm", "sobol", "--address")
	s := newServer(t)
	text := read(t, filepath.Join(example, "katib-config.yaml"))
	s.apply(t, strings.Replace(text, "127.0.0.1:7000", own, 1)+"        - {algorithmName: served, endpoint: \""+served+"\"}\n")

	experiment := read(t, filepath.Join(example, "experiment.yaml"))
	s.apply(t, experiment)
	s.apply(t, strings.NewReplacer("own-algorithm", "served-algorithm", "halving", "served").Replace(experiment))
	for _, name := range []string{"own-algorithm", "served-algorithm"} {
		object := s.ended("default", name, 2*time.Minute)
		if reason, message, ok := condition(object, "Succeeded"); !ok {
			t.Fatalf("%s has not succeeded: %s %s", name, reason, message)
		}
		different := map[string]bool{}
		list := s.trialsOf(name)
		for i := range list {
			different[assignments(&list[i])] = true
		}
		if len(different) != 10 {
			t.Errorf("%s made the points %v, want 10", name, different)
		}
	}
	list := s.trialsOf("served-algorithm")
	for i := range list {
		labels, _, _ := unstructured.NestedStringMap(list[i].Object, "spec", "labels")
		if labels["diwan.dev/index"] == "" {
			t.Errorf("trial %s of the server bears the labels %v, and no number", list[i].GetName(), labels)
		}
	}
}

// TestAlgorithmImage has an experiment's algorithm run from an image, as Katib
// has all of them.
func TestAlgorithmImage(t *testing.T) {
	t.Parallel()
	rootlesstest.NeedNamespaces(t) // several services listen on one port
	s := newServer(t)
	s.mapped(t, "example.com/algorithms", "--command", binary)
	s.apply(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: katib-config, namespace: kubeflow}
data:
  katib-config.yaml: |
    apiVersion: config.kubeflow.org/v1beta1
    kind: KatibConfig
    runtime:
      suggestions:
        - algorithmName: imaged
          image: example.com/algorithms:v1
          args: [algorithm-server, --algorithm, random, --address, "0.0.0.0:6789"]
        - algorithmName: absent
          image: example.com/nothing:v1
`)
	for name, policy := range map[string]string{"never": "Never", "lasting": "LongRunning", "volume": "FromVolume"} {
		x := shape{
			name: name, trials: 4, parallel: 2, command: "echo loss=${trialParameters.x}", algorithm: "imaged",
			spec: "  resumePolicy: " + policy,
		}
		if err := x.create(s); err != nil {
			t.Fatal(err)
		}
	}
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	for name, want := range map[string]struct{ deployment, claim bool }{"never": {}, "lasting": {deployment: true}, "volume": {claim: true}} {
		object := s.ended("default", name, 2*time.Minute)
		if reason, message, ok := condition(object, "Succeeded"); !ok {
			t.Fatalf("%s has not succeeded: %s %s", name, reason, message)
		}
		if list := s.trialsOf(name); len(list) != 4 {
			t.Errorf("%s made %d trials, want 4", name, len(list))
		}
		for resource, there := range map[schema.GroupVersionResource]bool{deployments: want.deployment, claims: want.claim} {
			eventually(t, time.Minute, func() error {
				_, err := s.client().Resource(resource).Namespace("default").Get(t.Context(), name+"-imaged", metav1.GetOptions{})
				if (err == nil) != there {
					return fmt.Errorf("%s of %s: %v, want it there: %t", resource.Resource, name, err, there)
				}
				return nil
			})
		}
	}
}

// background runs a program with a free address as its last argument until the
// test ends, and returns the address once the program says that it is ready.
func background(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, append(arguments, address)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "ready") {
		t.Fatalf("%s said %q, %v; want that it is ready", program, line, err)
	}
	return address
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
