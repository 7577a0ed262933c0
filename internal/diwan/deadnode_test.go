// SPDX-License-Identifier: Apache-2.0

package diwan_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// hollowNode makes a Node for the Pods of the namespace, on which nothing runs.
func (l *lab) hollowNode(name string) *corev1.Node {
	l.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: l.namespace + "-" + name, Labels: map[string]string{"diwan.dev/test": l.namespace}}}
	if err := l.client.Create(l.t.Context(), node); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if err := l.client.Delete(context.WithoutCancel(l.t.Context()), node); client.IgnoreNotFound(err) != nil {
			l.t.Error(err)
		}
	})
	l.update(node, func() { node.Spec.Taints = nil })
	l.answers(node, corev1.ConditionTrue)
	return node
}

// answers has a Node say whether it is ready; Unknown is what Kubernetes says of one
// that is silent.
func (l *lab) answers(node *corev1.Node, ready corev1.ConditionStatus) {
	l.t.Helper()
	l.eventually(func() string {
		l.get(node)
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		room := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("50"), corev1.ResourceCPU: resource.MustParse("50"), corev1.ResourceMemory: resource.MustParse("50Gi")}
		node.Status.Capacity, node.Status.Allocatable = room, room
		if err := l.client.Status().Update(l.t.Context(), node); err != nil {
			return err.Error()
		}
		return ""
	})
}

// onNode waits until so many Pods that nobody deletes are on a Node, has them
// run, and returns their UIDs by name.
func (l *lab) onNode(node *corev1.Node, n int) map[string]types.UID {
	l.t.Helper()
	uids := map[string]types.UID{}
	l.eventually(func() string {
		var pods corev1.PodList
		if err := l.client.List(l.t.Context(), &pods, client.InNamespace(l.namespace)); err != nil {
			return err.Error()
		}
		clear(uids)
		for _, p := range pods.Items {
			if p.Spec.NodeName != node.Name || p.DeletionTimestamp != nil {
				continue
			}
			if p.Status.Phase == corev1.PodPending {
				p.Status.Phase = corev1.PodRunning
				if err := l.client.Status().Update(l.t.Context(), &p); err != nil {
					return err.Error()
				}
			}
			uids[p.Name] = p.UID
		}
		if len(uids) != n {
			return fmt.Sprintf("%d Pods on %s, want %d", len(uids), node.Name, n)
		}
		return ""
	})
	return uids
}

// ends has a Pod succeed.
func (l *lab) ends(p *corev1.Pod) {
	l.t.Helper()
	l.eventually(func() string {
		l.get(p)
		p.Status.Phase = corev1.PodSucceeded
		if err := l.client.Status().Update(l.t.Context(), p); err != nil {
			return err.Error()
		}
		return ""
	})
}

// TestDeadNode has the node of a gang, and of a trial's Job, die: both go on
// elsewhere, though nobody there says that their Pods ended, and a restart is
// counted once.
func TestDeadNode(t *testing.T) {
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	l := newLab(t, func(context.Context, *corev1.Pod) (string, int32) { <-stop; return "", 0 })
	first := l.hollowNode("first")
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To(int64(1)),
		NodeSelector:                  first.Labels,
		Containers:                    []corev1.Container{{Name: "pytorch", Image: "none", Command: []string{"train"}}},
	}}
	gang := &v1.PyTorchJob{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "gang"}}
	gang.Spec.RunPolicy.RestartScope = v1.RestartJob
	gang.Spec.PyTorchReplicaSpecs = map[v1.ReplicaType]*v1.ReplicaSpec{
		v1.Master: {Replicas: ptr.To(int32(1)), RestartPolicy: v1.RestartOnFailure, Template: pod},
		v1.Worker: {Replicas: ptr.To(int32(2)), RestartPolicy: v1.RestartOnFailure, Template: pod},
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "job"}}
	job.Spec.Template = *pod.DeepCopy()
	job.Spec.Template.Labels = map[string]string{v1beta1.LabelTrial: "t"}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	for _, o := range []client.Object{gang, job} {
		if err := l.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	before := l.onNode(first, 4)
	l.eventually(func() string {
		l.get(gang)
		if s := gang.Status.ReplicaStatuses[v1.Worker]; s == nil || s.BegunIndexes != "0-1" {
			return "that the gang has begun"
		}
		return ""
	})

	second := l.hollowNode("second")
	l.update(first, func() { // as Kubernetes' controllers do with a silent node
		first.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}}
	})
	l.answers(first, corev1.ConditionUnknown)
	for name := range before {
		if err := l.client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	after := l.onNode(second, 4)
	for name, uid := range before {
		if after[name] == uid {
			t.Errorf("Pod %s is on both nodes", name)
		}
	}
	l.get(gang)
	if gang.Status.Restarts != 1 {
		t.Errorf("%d restarts are counted, want 1: %+v", gang.Status.Restarts, gang.Status)
	}
	for name := range after {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name}}
		l.ends(p)
	}
	l.eventually(func() string {
		l.get(job)
		for _, c := range job.Status.Conditions {
			if c.Type == batchv1.JobComplete {
				return ""
			}
		}
		return fmt.Sprintf("the end of the Job: %+v", job.Status)
	})
	l.eventually(func() string {
		var events eventsv1.EventList
		if err := l.client.List(t.Context(), &events, client.InNamespace(l.namespace)); err != nil {
			return err.Error()
		}
		for _, e := range events.Items {
			if e.Reason == "NodeLost" && e.Regarding.Name == gang.Name && strings.Contains(e.Note, first.Name) {
				return ""
			}
		}
		return "an event that says that the node is lost"
	})
}
