// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"diwan.dev/diwan/internal/platform/node"
)

// lateWatches is a transport whose watches deliver nothing while all is locked,
// and nothing that says of a Pod that it has succeeded while ends is.
type lateWatches struct {
	http.RoundTripper
	all, ends sync.RWMutex
}

func (l *lateWatches) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.RoundTripper.RoundTrip(r)
	if err == nil && r.URL.Query().Has("watch") {
		resp.Body = &lateBody{resp.Body, l}
	}
	return resp, err
}

type lateBody struct {
	io.ReadCloser
	late *lateWatches
}

func (b *lateBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	gate := &b.late.all
	if bytes.Contains(p[:n], []byte(corev1.PodSucceeded)) {
		gate = &b.late.ends
	}
	gate.RLock()
	defer gate.RUnlock()
	return n, err
}

// TestLateNewsRunsNothingAgain has a Pod end before the node hears of an
// earlier change of it, which shows the Pod as it was while it ran.
func TestLateNewsRunsNothingAgain(t *testing.T) {
	late := &lateWatches{}
	c, _ := cluster.Namespace(t)
	config := c.RESTConfig()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		late.RoundTripper = next
		return late
	})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, func(c *node.Config) { c.Client = client })
	runs := filepath.Join(t.TempDir(), "runs")
	begun, hurry := runs+".begun", runs+".hurry"
	first := b.create(b.pod("echo run >>" + runs + "; touch " + begun + "; until [ -e " + hurry + " ]; do sleep 0.01; done"))
	b.awaitFile(begun)

	late.all.Lock()
	late.ends.Lock()
	showAll, showEnds := sync.OnceFunc(late.all.Unlock), sync.OnceFunc(late.ends.Unlock)
	t.Cleanup(showEnds) // after showAll, so that the node can be stopped
	t.Cleanup(showAll)
	change := []byte(`{"metadata":{"labels":{"changed":"yes"}}}`)
	if _, err := b.client.CoreV1().Pods(b.namespace).Patch(t.Context(), first.Name, types.MergePatchType, change, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	second := b.create(b.pod("sleep 0.3"))
	if err := os.WriteFile(hurry, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.awaitPhase(first, corev1.PodSucceeded)
	b.awaitNoState()
	showAll()
	b.awaitPhase(second, corev1.PodSucceeded) // it began after the late news had come
	if text, _ := os.ReadFile(runs); strings.Count(string(text), "run") != 1 {
		t.Errorf("the Pod ran %d times, want once", strings.Count(string(text), "run"))
	}
}
