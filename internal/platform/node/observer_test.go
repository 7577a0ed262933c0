// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/internal/platform/node"
	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
)

// recorder observes everything and keeps it in memory, as a store would.
type recorder struct {
	mu   sync.Mutex
	seen map[string]*recording
}

type recording struct {
	mu                  sync.Mutex
	run                 node.Subject
	text                string
	finished, discarded bool
}

func (r *recorder) Observe(_ context.Context, s node.Subject) (node.Observer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := fmt.Sprintf("%s/%d", s.Pod.Name, s.Attempt)
	if r.seen[key] == nil {
		r.seen[key] = &recording{}
	}
	seen := r.seen[key]
	seen.mu.Lock()
	defer seen.mu.Unlock()
	seen.run = s
	return seen, nil
}

func (r *recorder) of(pod *corev1.Pod, attempt int) *recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[fmt.Sprintf("%s/%d", pod.Name, attempt)]
}

func (r *recording) Look(context.Context, time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	file, err := os.Open(r.run.Output)
	if err != nil {
		return err
	}
	defer file.Close()
	if start := r.run.OutputStart(); start > int64(len(r.text)) {
		return fmt.Errorf("bytes from %d to %d are gone", len(r.text), start)
	}
	more, err := io.ReadAll(io.NewSectionReader(file, int64(len(r.text)), math.MaxInt64-int64(len(r.text))))
	r.text += string(more)
	return err
}

func (r *recording) Finish(ctx context.Context, now time.Time) error {
	if err := r.Look(ctx, now); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finished = true
	return nil
}

func (r *recording) Discard(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.discarded, r.text = true, ""
	return nil
}

func (r *recording) Needs() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int64(len(r.text))
}

func (r *recording) Close() {}

func TestStopInterruptsAndRunsAgain(t *testing.T) {
	t.Run("who ends when asked", func(t *testing.T) { testInterrupt(t, "") })
	t.Run("who must be killed", func(t *testing.T) { testInterrupt(t, "trap '' TERM;") })
}

func testInterrupt(t *testing.T, trap string) {
	seen := &recorder{seen: map[string]*recording{}}
	b := newBench(t, func(c *node.Config) { c.Observers = seen })
	gate := filepath.Join(t.TempDir(), "gate")
	pod := b.create(b.pod(trap + `echo begun; while [ ! -e ` + gate + ` ]; do sleep 0.01; done; echo done`))
	b.awaitLog(pod, "main", 0, "begun")
	b.stop()
	os.WriteFile(gate, nil, 0o644)
	b.start()
	done := b.awaitPhase(pod, corev1.PodSucceeded)
	if n := done.Status.ContainerStatuses[0].RestartCount; n != 0 {
		t.Errorf("the interruption counts as %d restarts", n)
	}
	first, second := seen.of(pod, 0), seen.of(pod, 1)
	if first == nil || !first.discarded || second == nil || second.text != "begun\ndone\n" || !second.finished {
		t.Errorf("observed %+v and %+v", first, second)
	}
}

func TestLeftRunningIsAdopted(t *testing.T) {
	seen := &recorder{seen: map[string]*recording{}}
	b := newBench(t, func(c *node.Config) { c.Observers, c.LeaveRunning = seen, true })
	gate := filepath.Join(t.TempDir(), "gate")
	long := b.create(b.pod(`echo begun; while [ ! -e ` + gate + ` ]; do sleep 0.01; done; echo done; exit 4`))
	quick := b.create(b.pod(`echo begun; while [ ! -e ` + gate + `.2 ]; do sleep 0.01; done; echo done; exit 5`))
	b.awaitLog(long, "main", 0, "begun")
	b.awaitLog(quick, "main", 0, "begun")
	b.stop()
	os.WriteFile(gate+".2", nil, 0o644)
	b.awaitLog(quick, "main", 0, "done") // while no node is there
	b.start()
	for pod, code := range map[*corev1.Pod]int32{quick: 5, long: 4} {
		if pod == long {
			os.WriteFile(gate, nil, 0o644)
		}
		done := b.awaitPhase(pod, corev1.PodFailed)
		if end := done.Status.ContainerStatuses[0].State.Terminated; end.ExitCode != code {
			t.Errorf("the end is %+v, want code %d", end, code)
		}
		if o := seen.of(pod, 0); o.text != "begun\ndone\n" || !o.finished || o.discarded || seen.of(pod, 1) != nil {
			t.Errorf("observed %+v", o)
		}
	}
}

// TestSubject checks what an observer is told of a run.
func TestSubject(t *testing.T) {
	rootlesstest.NeedNamespaces(t)
	seen := &recorder{seen: map[string]*recording{}}
	b := newBench(t, func(c *node.Config) { c.Observers = seen })
	gate := filepath.Join(t.TempDir(), "gate")
	pod := b.pod(`echo 1 > /m/sub/file; echo begun; while [ ! -e ` + gate + ` ]; do sleep 0.01; done`)
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/m/sub"}}
	pod = b.create(pod)
	b.awaitLog(pod, "main", 0, "begun")
	o := seen.of(pod, 0)
	o.mu.Lock()
	s := o.run
	o.mu.Unlock()
	if path, own := s.HostPath("/m/sub/../sub/file"); !own {
		t.Errorf("%s is not the Pod's own", path)
	} else if text, err := os.ReadFile(path); string(text) != "1\n" {
		t.Errorf("%s has %q, %v", path, text, err)
	}
	if path, own := s.HostPath(gate); own || path != gate {
		t.Errorf("a path without a mount is %s, own %v", path, own)
	}
	if s.Pod.UID != pod.UID || s.Container != "main" || s.Attempt != 0 || s.OutputStart() != 0 {
		t.Errorf("the subject is %+v", s)
	}
	if ip, err := netip.ParseAddr(s.Address); err != nil || !ip.IsLoopback() {
		t.Errorf("the address is %q, want one of loopback, as the network of this test has", s.Address)
	}
	s.Warn("no metrics")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		events, err := b.client.CoreV1().Events(b.namespace).List(t.Context(), metav1.ListOptions{})
		if err == nil && slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.InvolvedObject.UID == pod.UID && e.Reason == "MetricsCollection" && e.Message == "no metrics"
		}) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no event tells what is wrong (%v)", err)
		}
	}
	os.WriteFile(gate, nil, 0o644)
	b.awaitPhase(pod, corev1.PodSucceeded)
}
