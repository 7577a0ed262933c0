// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

const gangJob = `{kind: PyTorchJob, metadata: {annotations: {a: b}}, spec: {runPolicy: {SUSPEND schedulingPolicy: POLICY}, pytorchReplicaSpecs: {
	Master: {replicas: 1, template: {spec: {containers: [{name: pytorch, image: i, resources: {limits: {cpu: 500m}}}]}}},
	Worker: {replicas: 3, template: {spec: {containers: [{name: pytorch, image: i, resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 9}}}]}}}}}}`

func TestPodGroup(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, scheduler, policy, version string
		want                               map[string]any
	}{
		"Volcano":      {"all must fit at once, with what they ask for", "volcano", "{}", "scheduling.volcano.sh/v1beta1", map[string]any{"minMember": int64(4), "queue": "default", "minResources": map[string]any{"cpu": "3500m", "memory": "3Gi"}}},
		"VolcanoAll":   {"as the user says", "volcano", "{minAvailable: 2, queue: q, priorityClass: high, scheduleTimeoutSeconds: 9}", "scheduling.volcano.sh/v1beta1", map[string]any{"minMember": int64(2), "queue": "q", "priorityClassName": "high", "minResources": map[string]any{"cpu": "1500m", "memory": "1Gi"}}},
		"Coscheduling": {"the plugin knows no queues", "scheduler-plugins", "{queue: q, minResources: {cpu: 7}, scheduleTimeoutSeconds: 9}", "scheduling.x-k8s.io/v1alpha1", map[string]any{"minMember": int64(4), "scheduleTimeoutSeconds": int64(9), "minResources": map[string]any{"cpu": "7"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, job := read(t, strings.NewReplacer("POLICY", tc.policy, "SUSPEND", "").Replace(gangJob))
			g := gang{f, tc.scheduler, false}
			group := decide(g, job, have{}, noon).objects[0].(*unstructured.Unstructured)
			if diff := cmp.Diff(tc.want, group.Object["spec"]); diff != "" || group.GetAPIVersion() != tc.version || group.GetAnnotations()["a"] != "b" {
				t.Errorf("%s: %s (-want +got)\n%s", tc.reason, group.GetAPIVersion(), diff)
			}
			p := newPod(g, job, Replica{v1.Worker, 0})
			marks := map[string]string{"volcano": p.Annotations["scheduling.k8s.io/group-name"] + p.Annotations["volcano.sh/task-spec"], "scheduler-plugins": p.Labels["scheduling.x-k8s.io/pod-group"] + "worker"}
			if p.Spec.SchedulerName != tc.scheduler || marks[tc.scheduler] != "jworker" {
				t.Errorf("a Pod goes to %q as %v", p.Spec.SchedulerName, marks)
			}
			suspended, job := read(t, strings.NewReplacer("POLICY", tc.policy, "SUSPEND", "suspend: true,").Replace(gangJob))
			if p := decide(gang{suspended, tc.scheduler, false}, job, have{}, noon); len(p.drop) != 1 || len(p.objects) != 0 {
				t.Error("the group of a suspended job stays")
			}
		})
	}
}

// TestNativeGroup holds what Kubernetes' own groups say, whose scheduler knows no
// Pods that have ended.
func TestNativeGroup(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, policy string
		pods           []string
		want, class    string
	}{
		"All":       {"all, with nothing of what it has no words for", "{queue: q, minResources: {cpu: 7}, scheduleTimeoutSeconds: 9}", nil, `{"schedulingPolicy":{"gang":{"minCount":4}}}`, ""},
		"Class":     {"its Pods must have its priority", "{minAvailable: 2, priorityClass: high}", nil, `{"priorityClassName":"high","schedulingPolicy":{"gang":{"minCount":2}}}`, "high"},
		"Succeeded": {"the replacement of a worker does not wait for one that is done", "{}", []string{"master-0 Running", "worker-0 Succeeded 0", "worker-1 Failed 1"}, `{"schedulingPolicy":{"gang":{"minCount":3}}}`, ""},
		"Before":    {"nor for those that were made before jobs were gangs", "{}", []string{"master-0 Running", "worker-0 Running"}, `{"schedulingPolicy":{"gang":{"minCount":2}}}`, ""},
		"Few":       {"at least one is what the API asks for", "{minAvailable: 1}", []string{"worker-0 Succeeded 0", "worker-1 Succeeded 0"}, `{"schedulingPolicy":{"gang":{"minCount":1}}}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, job := read(t, strings.NewReplacer("POLICY", tc.policy, "SUSPEND", "").Replace(gangJob))
			g := gang{f, native, false}
			var pods []*corev1.Pod
			for _, description := range tc.pods {
				pod := podOf(t, g, job, description)
				if name == "Before" {
					pod.Spec.SchedulingGroup = nil
				}
				pods = append(pods, pod)
			}
			group := decide(g, job, have{pods: pods}, noon).objects[0].(*unstructured.Unstructured)
			spec, err := json.Marshal(group.Object["spec"])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(spec)); diff != "" || group.GetAPIVersion() != "scheduling.k8s.io/v1beta1" {
				t.Errorf("%s: %s (-want +got)\n%s", tc.reason, group.GetAPIVersion(), diff)
			}
			p := newPod(g, job, Replica{v1.Worker, 0}).Spec
			if p.SchedulerName != "" || p.SchedulingGroup == nil || *p.SchedulingGroup.PodGroupName != "j" || p.PriorityClassName != tc.class {
				t.Errorf("a Pod goes to %q in %v with class %q", p.SchedulerName, p.SchedulingGroup, p.PriorityClassName)
			}
		})
	}
}

// TestOnto holds that a group keeps what others have written of it.
func TestOnto(t *testing.T) {
	t.Parallel()
	for version, defaults := range map[string]bool{nativeVersion: true, coschedulingVersion: false} {
		have := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": podGroupKind,
			"metadata": map[string]any{"finalizers": []any{"f"}, "labels": map[string]any{"theirs": "x"}},
			"spec":     map[string]any{"said": "before", "added": "by the API server"}}}
		should := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": podGroupKind,
			"metadata": map[string]any{"labels": map[string]any{"ours": "y"}}, "spec": map[string]any{"said": "now"}}}
		got := onto(have, should)
		_, added := got.Object["spec"].(map[string]any)["added"]
		if len(got.GetFinalizers()) != 1 || len(got.GetLabels()) != 2 || added != defaults || got.Object["spec"].(map[string]any)["said"] != "now" {
			t.Errorf("a group of %s becomes %v", version, got.Object)
		}
		if same, err := says(got, should); !same || err != nil {
			t.Errorf("a group of %s does not say what was written: %v", version, err)
		}
	}
}

// TestGangOfWorkers holds that a gang does not count who comes later.
func TestGangOfWorkers(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]int{"AtStartup": 4, "WaitForWorkersReady": 3} {
		_, job := read(t, strings.Replace(`{kind: MPIJob, apiVersion: kubeflow.org/v2beta1, spec: {mpiImplementation: OpenMPI, launcherCreationPolicy: POLICY, mpiReplicaSpecs: {
			Launcher: {replicas: 1, template: {spec: {containers: [{name: mpi, image: i}]}}}, Worker: {replicas: 3, template: {spec: {containers: [{name: mpi, image: i}]}}}}}}`, "POLICY", policy, 1))
		if got := minMember(job); got != want {
			t.Errorf("%s: %d members, want %d", policy, got, want)
		}
	}
}

func TestAutoscaler(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{kind: PyTorchJob, spec: {runPolicy: RUN, elasticPolicy: {minReplicas: 1, maxReplicas: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}, pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: i}]}}}}}}`,
		`{kind: PaddleJob, spec: {runPolicy: RUN, elasticPolicy: {minReplicas: 1, maxReplicas: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}, paddleReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: paddle, image: i}]}}}}}}`,
	} {
		f, job := read(t, strings.Replace(text, "RUN", "{}", 1))
		scaler := decide(f, job, have{}, noon).objects[0].(*autoscalingv2.HorizontalPodAutoscaler)
		target := autoscalingv2.CrossVersionObjectReference{APIVersion: "kubeflow.org/v1", Kind: job.Traits().Kind, Name: "j"}
		if s := scaler.Spec; s.ScaleTargetRef != target || *s.MinReplicas != 1 || s.MaxReplicas != 3 || len(s.Metrics) != 1 {
			t.Errorf("the autoscaler of a %s is %+v", job.Traits().Kind, s)
		}
		f, job = read(t, strings.Replace(text, "RUN", "{suspend: true}", 1))
		if p := decide(f, job, have{}, noon); len(p.drop) != 1 {
			t.Errorf("the autoscaler of a suspended %s stays", job.Traits().Kind)
		}
	}
	f, job := read(t, strings.NewReplacer("POLICY", "Never", "RUN", "{}").Replace(elasticJob))
	if p := decide(f, job, have{}, noon); len(p.objects) != 0 {
		t.Error("an elastic job without metrics has an autoscaler")
	}
}
