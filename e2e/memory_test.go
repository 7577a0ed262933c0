// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// TestLargeManifest changes an experiment of nearly 1 MB many times: the process
// must not keep each of its states.
func TestLargeManifest(t *testing.T) {
	t.Parallel()
	profiles := filepath.Join(t.TempDir(), "profiles")
	s := newServer(t, "--pprof", profiles)
	variables := make([]any, 20000)
	for i := range variables {
		variables[i] = map[string]any{"name": fmt.Sprintf("VARIABLE_%06d", i), "value": "v"}
	}
	experiment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubeflow.org/v1beta1", "kind": "Experiment", "metadata": map[string]any{"name": "large"},
		"spec": map[string]any{
			"suspend":    true,
			"objective":  map[string]any{"type": "minimize", "objectiveMetricName": "loss"},
			"algorithm":  map[string]any{"algorithmName": "random"},
			"parameters": []any{map[string]any{"name": "x", "parameterType": "double", "feasibleSpace": map[string]any{"min": "0", "max": "1"}}},
			"trialTemplate": map[string]any{
				"primaryContainerName": "main", "trialParameters": []any{map[string]any{"name": "x", "reference": "x"}},
				"trialSpec": map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": map[string]any{"template": map[string]any{"spec": map[string]any{
					"restartPolicy": "Never",
					"containers":    []any{map[string]any{"name": "main", "image": "none", "command": []any{"echo", "loss=${trialParameters.x}"}, "env": variables}},
				}}}},
			},
		},
	}}
	client := s.client().Resource(experiments).Namespace("default")
	if _, err := client.Create(t.Context(), experiment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	before := heap(t, profiles)
	for i := range 15 {
		patch := fmt.Sprintf(`{"metadata": {"annotations": {"change": "%d"}}}`, i)
		if _, err := client.Patch(t.Context(), "large", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const most = 80 << 20
	if after := heap(t, profiles); after > before+most {
		t.Errorf("15 changes of the experiment left %d MiB in the heap, want less than %d", (after-before)>>20, most>>20)
	}
}

var heapAlloc = regexp.MustCompile(`# HeapAlloc = (\d+)`)

// heap is how many bytes live in a process after a garbage collection, by its profiles at a socket.
func heap(t *testing.T, socket string) int64 {
	t.Helper()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	response, err := client.Get("http://profiles/debug/pprof/heap?gc=1&debug=1")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := heapAlloc.FindStringSubmatch(string(text))
	if found == nil {
		t.Fatalf("the profile tells no heap:\n%s", strings.TrimSpace(string(text[:min(len(text), 200)])))
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
