// SPDX-License-Identifier: Apache-2.0

package nativetest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
	"diwan.dev/diwan/internal/diwan"
	"diwan.dev/diwan/internal/testing/clustertest"
	"diwan.dev/diwan/internal/testing/hollow"
)

var cluster = clustertest.Shared{Args: []string{"--gang-scheduler-name", "kubernetes"}}

func TestMain(m *testing.M) { os.Exit(cluster.Run(m)) }

// floor is a namespace with a node of its own, of four places.
type floor struct {
	t         *testing.T
	client    client.Client
	namespace string
}

func newFloor(t *testing.T) *floor {
	t.Helper()
	t.Parallel()
	c, namespace := cluster.Namespace(t)
	scheme, err := diwan.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(c.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	kube, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	stop, err := hollow.Start(t.Context(), hollow.Config{Client: kube, Name: namespace, Count: 1, Capacity: corev1.ResourceList{
		"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return &floor{t, api, namespace}
}

// create creates an object; a spec of Pods in it goes to the node of the floor.
func (f *floor) create(text string) {
	f.t.Helper()
	text = strings.ReplaceAll(text, "POD", fmt.Sprintf("nodeSelector: {%s: %s}, containers: [{name: pytorch, image: i, command: [train], resources: {requests: {cpu: 1}}}]", hollow.Label, f.namespace))
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		f.t.Fatalf("%v: %s", err, text)
	}
	obj.SetNamespace(f.namespace)
	if err := f.client.Create(f.t.Context(), obj); err != nil {
		f.t.Fatal(err)
	}
}

// gang creates a job of a master and two workers, who take a place each.
func (f *floor) gang(name, policy string) {
	f.t.Helper()
	f.create(strings.NewReplacer("NAME", name, "POLICY", policy).Replace(`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: NAME}, spec: {runPolicy: {schedulingPolicy: POLICY}, pytorchReplicaSpecs: {
		Master: {replicas: 1, restartPolicy: OnFailure, template: {spec: {POD}}}, Worker: {replicas: 2, restartPolicy: OnFailure, template: {spec: {POD}}}}}}`))
}

func (f *floor) read(obj client.Object, name string) error {
	return f.client.Get(f.t.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, obj)
}

func (f *floor) job(name string) *v1.PyTorchJob {
	f.t.Helper()
	job := &v1.PyTorchJob{}
	if err := f.read(job, name); err != nil {
		f.t.Fatal(err)
	}
	return job
}

// change changes a job's run policy.
func (f *floor) change(name, policy string) {
	f.t.Helper()
	if err := f.client.Patch(f.t.Context(), f.job(name), client.RawPatch(types.MergePatchType, []byte(`{"spec": {"runPolicy": `+policy+`}}`))); err != nil {
		f.t.Fatal(err)
	}
}

// group is a job's group, nil if it has none.
func (f *floor) group(name string) *schedulingv1beta1.PodGroup {
	f.t.Helper()
	group := &schedulingv1beta1.PodGroup{}
	if err := f.read(group, name); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		f.t.Fatal(err)
	}
	return group
}

// placed counts the Pods of a job that have a node and have not ended.
func (f *floor) placed(job string) int {
	f.t.Helper()
	var pods corev1.PodList
	if err := f.client.List(f.t.Context(), &pods, client.InNamespace(f.namespace), client.MatchingLabels{v1.LabelJobName: job}); err != nil {
		f.t.Fatal(err)
	}
	n := 0
	for _, p := range pods.Items {
		if p.Spec.NodeName != "" && p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			n++
		}
	}
	return n
}

// end gives replicas of a job an end, when their Pods run.
func (f *floor) end(job string, phase corev1.PodPhase, replicas ...string) {
	f.t.Helper()
	for _, r := range replicas {
		p := &corev1.Pod{}
		f.until(r+" does not run", func() bool { return f.read(p, job+"-"+r) == nil && p.Status.Phase == corev1.PodRunning })
		p.Status.Phase = phase
		if err := f.client.Status().Update(f.t.Context(), p); err != nil {
			f.t.Fatal(err)
		}
	}
}

// told reports whether an event about something has words in it.
func (f *floor) told(about, words string) bool {
	f.t.Helper()
	var events corev1.EventList
	if err := f.client.List(f.t.Context(), &events, client.InNamespace(f.namespace)); err != nil {
		f.t.Fatal(err)
	}
	for _, e := range events.Items {
		if strings.HasPrefix(e.InvolvedObject.Name, about) && strings.Contains(e.Message, words) {
			return true
		}
	}
	return false
}

// until waits for something.
func (f *floor) until(what string, holds func() bool) {
	f.t.Helper()
	err := wait.PollUntilContextTimeout(f.t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return holds(), nil })
	if err == nil {
		return
	}
	var pods corev1.PodList
	_ = f.client.List(f.t.Context(), &pods, client.InNamespace(f.namespace))
	for _, p := range pods.Items {
		f.t.Logf("%s %s on %q %v", p.Name, p.Status.Phase, p.Spec.NodeName, p.Status.Conditions)
	}
	var groups schedulingv1beta1.PodGroupList
	_ = f.client.List(f.t.Context(), &groups, client.InNamespace(f.namespace))
	for _, g := range groups.Items {
		f.t.Logf("PodGroup %s %+v %+v", g.Name, g.Spec.SchedulingPolicy.Gang, g.Status.Conditions)
	}
	f.t.Fatalf("%s: %v", what, err)
}

// TestShare has gangs of three run on four places: each runs, whole, one after
// the other.
func TestShare(t *testing.T) {
	const gangs = 4
	f := newFloor(t)
	for i := range gangs {
		f.gang(fmt.Sprintf("j%d", i), "{}")
	}
	over := map[string]bool{}
	for len(over) < gangs {
		running := ""
		f.until("no gang runs whole", func() bool {
			for i := range gangs {
				name := fmt.Sprintf("j%d", i)
				if !over[name] && f.placed(name) == 3 && f.job(name).Status.Is(v1.JobRunning) {
					running = name
				}
			}
			return running != ""
		})
		for i := range gangs {
			if name := fmt.Sprintf("j%d", i); name != running && f.placed(name) > 0 {
				t.Errorf("while %s runs, %s holds %d places", running, name, f.placed(name))
			}
		}
		if g := f.group(running); !meta.IsStatusConditionTrue(g.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled) {
			t.Errorf("the group of a job that runs says %v", g.Status.Conditions)
		}
		f.end(running, corev1.PodSucceeded, "master-0", "worker-0", "worker-1")
		f.until("the job does not succeed", func() bool { return f.job(running).Status.Is(v1.JobSucceeded) })
		f.until("the group of a job that has ended stays", func() bool { return f.group(running) == nil })
		over[running] = true
	}
}

// TestMends has a gang of which one has succeeded and another failed: the failed
// one is replaced alone. Suspended, it holds nothing, and resumed it is a gang.
func TestMends(t *testing.T) {
	f := newFloor(t)
	f.gang("j", "{}")
	f.until("the job does not run", func() bool { return f.placed("j") == 3 })
	f.end("j", corev1.PodSucceeded, "worker-0")
	f.end("j", corev1.PodFailed, "worker-1")
	f.until("the failed worker is not replaced", func() bool { return f.job("j").Status.Restarts == 1 && f.placed("j") == 2 })

	f.gang("next", "{}")
	f.until("the next does not say that it waits", func() bool {
		g := f.group("next")
		return g != nil && meta.IsStatusConditionFalse(g.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
	})
	f.change("j", `{"suspend": true}`)
	f.until("the next does not run", func() bool { return f.placed("next") == 3 })
	f.until("the group of a suspended job stays", func() bool { return f.group("j") == nil })
	f.change("j", `{"suspend": false}`)
	f.until("a resumed job has no group", func() bool { return f.group("j") != nil })
	if n := f.group("j").Spec.SchedulingPolicy.Gang.MinCount; n != 3 || f.placed("j") > 0 {
		t.Errorf("a gang that begins anew needs %d Pods, and %d are placed beside another", n, f.placed("j"))
	}
	f.end("next", corev1.PodSucceeded, "master-0", "worker-0", "worker-1")
	f.until("a resumed job does not run", func() bool { return f.placed("j") == 3 })
}

// TestTooLarge has a job whose minAvailable is more than it has stay Created, and
// run once it is put right; its Pods have the priority of their group.
func TestTooLarge(t *testing.T) {
	f := newFloor(t)
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}, Value: 1000}
	if err := f.client.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.client.Delete(context.Background(), class) })
	f.gang("j", "{minAvailable: 10, priorityClass: "+f.namespace+"}")
	f.until("no one is told why", func() bool { return f.told("j", "minAvailable is 10") })
	if s := f.job("j").Status; f.placed("j") != 0 || !s.Is(v1.JobCreated) || s.Is(v1.JobRunning) {
		t.Errorf("%d Pods are placed, conditions %v", f.placed("j"), s.Conditions)
	}
	f.change("j", `{"schedulingPolicy": {"minAvailable": 3}}`)
	f.until("the job does not run", func() bool { return f.placed("j") == 3 })
	if g := f.group("j"); *g.Spec.Priority != 1000 || g.Spec.SchedulingPolicy.Gang.MinCount != 3 || len(g.Finalizers) == 0 {
		t.Errorf("the group has priority %d, %+v, finalizers %v", *g.Spec.Priority, g.Spec.SchedulingPolicy.Gang, g.Finalizers)
	}
}

// TestByHand has Pods of all three APIs share a node: what one of them waits for,
// no other holds.
func TestByHand(t *testing.T) {
	f := newFloor(t)
	f.create(`{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: own}, spec: {schedulingPolicy: {gang: {minCount: 3}}}}`)
	f.create(`{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: other}, spec: {minMember: 3}}`)
	for i := range 3 {
		f.create(fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: own-%d}, spec: {schedulingGroup: {podGroupName: own}, POD}}`, i))
		f.create(fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: other-%d, labels: {scheduling.x-k8s.io/pod-group: other}}, spec: {POD}}`, i))
	}
	running := func(group string) int {
		n := 0
		for i := range 3 {
			p := &corev1.Pod{}
			if f.read(p, fmt.Sprintf("%s-%d", group, i)) == nil && p.Spec.NodeName != "" {
				n++
			}
		}
		return n
	}
	first, second := "own", "other"
	f.until("neither gang runs", func() bool {
		if running(second) == 3 {
			first, second = second, first
		}
		return running(first) == 3
	})
	if n := running(second); n > 0 {
		t.Errorf("beside %s, %s holds %d places", first, second, n)
	}
	for i := range 3 {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: fmt.Sprintf("%s-%d", first, i)}}
		if err := f.client.Delete(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	f.until("the other gang does not run", func() bool { return running(second) == 3 })
}
