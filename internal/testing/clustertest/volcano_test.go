// SPDX-License-Identifier: Apache-2.0

package clustertest_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"diwan.dev/diwan/internal/scheduling/gang"
	"diwan.dev/diwan/internal/testing/clustertest"
	"diwan.dev/diwan/internal/testing/hollow"
)

// The operator of this cluster makes every job a gang of Volcano.
var cluster = clustertest.Shared{Args: []string{"--gang-scheduler-name", "volcano"}}

func TestMain(m *testing.M) { os.Exit(cluster.Run(m)) }

// TestVolcanoJobs has one job that fits, and one that waits, without any Pod,
// for a node that it fits on.
func TestVolcanoJobs(t *testing.T) {
	t.Parallel()
	c, namespace := cluster.Namespace(t)
	kube, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	nodes := func(name, places string) {
		stop, err := hollow.Start(t.Context(), hollow.Config{Client: kube, Name: name, Count: 1, Capacity: corev1.ResourceList{
			"cpu": resource.MustParse("9"), "memory": resource.MustParse("1Gi"), "pods": resource.MustParse("110"), "diwan.dev/place": resource.MustParse(places),
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
	}
	nodes("small", "2")
	jobs := objects.Resource(schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"}).Namespace(namespace)
	for name, places := range map[string]string{"fits": "1", "waits": "2"} {
		job := &unstructured.Unstructured{}
		text := strings.NewReplacer("NAME", name, "N", places).Replace(`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: NAME}, spec: {runPolicy: {schedulingPolicy: {queue: q}}, pytorchReplicaSpecs: {
			Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, image: i, resources: {limits: {diwan.dev/place: N}}}]}}}}}}`)
		if err := yaml.Unmarshal([]byte(text), &job.Object); err != nil {
			t.Fatal(err)
		}
		if _, err := jobs.Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	until := func(what string, holds func() bool) {
		t.Helper()
		if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return holds(), nil }); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	phase := func(name string) string {
		group, err := objects.Resource(gang.Volcano).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if queue, _, _ := unstructured.NestedString(group.Object, "spec", "queue"); queue != "q" {
			t.Errorf("the group of %s is in queue %q", name, queue)
		}
		text, _, _ := unstructured.NestedString(group.Object, "status", "phase")
		return text
	}
	pods := func(name string) (n int) {
		all, err := kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "training.kubeflow.org/job-name=" + name})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all.Items {
			if p.Spec.SchedulerName != "volcano" || p.Annotations["scheduling.k8s.io/group-name"] != name || p.Annotations["volcano.sh/task-spec"] != "worker" {
				t.Errorf("Pod %s is not of Volcano: %v", p.Name, p.Annotations)
			}
		}
		return len(all.Items)
	}
	until("the job that fits does not run", func() bool { return phase("fits") == "Running" })
	until("the group that does not fit is not pending", func() bool { return phase("waits") == "Pending" })
	if n := pods("waits"); n != 0 || pods("fits") != 2 {
		t.Errorf("a group that is not let in has %d Pods", n)
	}
	nodes("large", "4")
	until("the other does not run, though there is room now", func() bool { return phase("waits") == "Running" })
	if n := pods("waits"); n != 2 {
		t.Errorf("it has %d Pods", n)
	}

	// One of the two replicas succeeds, the other is lost: its replacement does not wait for the first.
	running := func(name string, not types.UID) (pod *corev1.Pod) {
		until(name+" does not run", func() bool {
			pod, err = kube.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
			return err == nil && pod.UID != not && pod.Status.Phase == corev1.PodRunning
		})
		return pod
	}
	done, lost := running("fits-worker-0", ""), running("fits-worker-1", "")
	done.Status.Phase = corev1.PodSucceeded
	if _, err := kube.CoreV1().Pods(namespace).UpdateStatus(t.Context(), done, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := kube.CoreV1().Pods(namespace).Delete(t.Context(), lost.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	running(lost.Name, lost.UID)
}
