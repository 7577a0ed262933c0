// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// large is a job of so many replicas that all run, but for the last.
func large(t testing.TB, kind string, replicas int) (Framework, world) {
	t.Helper()
	manifests := map[string]string{
		"PyTorchJob": "{kind: PyTorchJob, spec: {runPolicy: {backoffLimit: 3}, pytorchReplicaSpecs: {Master: {replicas: 1, template: {spec: {containers: [{name: pytorch, image: i}]}}}, Worker: {replicas: %d, template: {spec: {containers: [{name: pytorch, image: i}]}}}}}}",
		"TFJob":      "{kind: TFJob, spec: {tfReplicaSpecs: {Chief: {replicas: 1, template: {spec: {containers: [{name: tensorflow, image: i}]}}}, Worker: {replicas: %d, template: {spec: {containers: [{name: tensorflow, image: i}]}}}}}}",
	}
	f, job := read(t, fmt.Sprintf(manifests[kind], replicas-1))
	w := world{f: f, job: job, pods: map[string]*corev1.Pod{}}
	for name, spec := range job.Replicas() {
		for i := range int(*spec.Replicas) {
			phase := "Running"
			if i == int(*spec.Replicas)-1 && i > 0 {
				phase = "Pending"
			}
			p := podOf(t, f, job, fmt.Sprintf("%s-%d %s", name, i, phase))
			w.pods[p.Name] = p
		}
	}
	return f, w
}

// TestLargeJobs holds that a job's status does not grow with its replicas, and
// that to look at it takes time that grows no faster than they do.
func TestLargeJobs(t *testing.T) { // alone, since it counts allocations
	cost := func(replicas int) (allocations float64, size int) {
		f, w := large(t, "PyTorchJob", replicas)
		pods := w.list()
		p := decide(f, w.job, have{pods: pods}, noon)
		text, err := json.Marshal(p.status)
		if err != nil || len(p.create) > 0 {
			t.Fatalf("%d Pods are created: %v", len(p.create), err)
		}
		return testing.AllocsPerRun(3, func() { decide(f, w.job, have{pods: pods}, noon) }), len(text)
	}
	few, small := cost(100)
	many, big := cost(1000)
	if many > 15*few {
		t.Errorf("100 replicas take %.0f allocations, 1,000 take %.0f", few, many)
	}
	if big > small+100 {
		t.Errorf("the status of 100 replicas has %d bytes, that of 1,000 %d", small, big)
	}
}

// BenchmarkDecide looks at a large job that is all but complete.
func BenchmarkDecide(b *testing.B) {
	for _, replicas := range []int{8, 1000} {
		b.Run(fmt.Sprint(replicas), func(b *testing.B) {
			f, w := large(b, "PyTorchJob", replicas)
			pods := w.list()
			for b.Loop() {
				decide(f, w.job, have{pods: pods}, noon)
			}
		})
	}
}

// BenchmarkNewPod makes a Pod that is told where all others are.
func BenchmarkNewPod(b *testing.B) {
	for _, replicas := range []int{8, 1000} {
		b.Run(fmt.Sprint(replicas), func(b *testing.B) {
			f, w := large(b, "TFJob", replicas)
			for b.Loop() {
				newPod(f, w.job, Replica{"Worker", 0})
			}
		})
	}
}
