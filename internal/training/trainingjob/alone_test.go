// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRestartedAlone holds when one is told that a replica waits for others which have
// succeeded.
func TestRestartedAlone(t *testing.T) {
	t.Parallel()
	const tensorflowJob = `{kind: TFJob, spec: {runPolicy: RUN, tfReplicaSpecs: {
		Chief: {replicas: 1, restartPolicy: POLICY, template: {spec: {containers: [{name: tensorflow, image: i}]}}},
		PS: {replicas: 1, restartPolicy: POLICY, template: {spec: {containers: [{name: tensorflow, image: i}]}}},
		Worker: {replicas: 1, restartPolicy: POLICY, template: {spec: {containers: [{name: tensorflow, image: i}]}}}}}}`
	cases := map[string]struct {
		reason, job, run string
		pods             []string
		began, succeeded time.Duration // when the first Pod began, and the others succeeded
		want             bool
	}{
		"InPlace":   {"A master that the kubelet restarted finds no worker", pytorchJob, "{}", []string{"master-0 Running restarts=1", "worker-0 Succeeded 0", "worker-1 Running"}, 20, 10, true},
		"Together":  {"All begin again", pytorchJob, "{restartScope: Job}", []string{"master-0 Running restarts=1", "worker-0 Succeeded 0", "worker-1 Running"}, 20, 10, false},
		"Earlier":   {"It was restarted before the worker succeeded", pytorchJob, "{}", []string{"master-0 Running restarts=1", "worker-0 Succeeded 0", "worker-1 Running"}, 5, 10, false},
		"Late":      {"It came late, and is not restarted", pytorchJob, "{}", []string{"master-0 Running", "worker-0 Succeeded 0", "worker-1 Running"}, 20, 10, false},
		"Alone":     {"None has succeeded", pytorchJob, "{}", []string{"master-0 Running restarts=1", "worker-0 Running", "worker-1 Running"}, 20, 10, false},
		"JAX":       {"JAX waits too", jaxJob, "{}", []string{"worker-0 Running restarts=1", "worker-1 Succeeded 0"}, 20, 10, true},
		"Parameter": {"Workers of parameter servers wait for nobody", tensorflowJob, "{}", []string{"chief-0 Running restarts=1", "ps-0 Running", "worker-0 Succeeded 0"}, 20, 10, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, job := read(t, strings.NewReplacer("POLICY", "OnFailure", "RUN", tc.run).Replace(tc.job))
			setState(t, job, "Created Running")
			var pods []*corev1.Pod
			for i, description := range tc.pods {
				p := podOf(t, f, job, description)
				main := corev1.ContainerStatus{Name: job.Traits().Main(&p.Spec).Name}
				if len(p.Status.ContainerStatuses) > 0 {
					main = p.Status.ContainerStatuses[0]
				}
				if main.State.Terminated != nil {
					main.State.Terminated.FinishedAt = metav1.NewTime(noon.Add(tc.succeeded * time.Second))
				} else {
					began := noon
					if i == 0 {
						began = noon.Add(tc.began * time.Second)
					}
					main.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(began)}
				}
				p.Status.ContainerStatuses = []corev1.ContainerStatus{main}
				pods = append(pods, p)
			}
			p := decide(f, job, have{pods: pods}, noon.Add(time.Minute))
			got := false
			for _, e := range p.events {
				got = got || e.reason == "RestartedAlone" && strings.Contains(e.message, "restartScope")
			}
			if got != tc.want {
				t.Errorf("%s: the events are %+v", tc.reason, p.events)
			}
		})
	}
}
