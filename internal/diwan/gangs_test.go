// SPDX-License-Identifier: Apache-2.0

package diwan_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
	"diwan.dev/diwan/internal/testing/hollow"
)

// floor is a namespace whose Pods run on hollow nodes of its own.
type floor struct {
	t         *testing.T
	client    client.WithWatch
	namespace string
}

// newFloor makes nodes of so many processors each.
func newFloor(t *testing.T, nodes int, cpu string) *floor {
	t.Helper()
	t.Parallel()
	c, api, namespace := connect(t)
	kube, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	stop, err := hollow.Start(t.Context(), hollow.Config{Client: kube, Name: namespace, Count: nodes, Capacity: corev1.ResourceList{
		"cpu": resource.MustParse(cpu), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("110"),
		// So that the sums over all nodes of the cluster are not those of other tests.
		placesOf(namespace): resource.MustParse(cpu),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return &floor{t, api, namespace}
}

// placesOf is a resource that only a test's own nodes have.
func placesOf(namespace string) corev1.ResourceName {
	return corev1.ResourceName("diwan.dev/" + namespace)
}

// gang creates a PyTorchJob of a master and workers that take a place each.
func (f *floor) gang(name string, workers int, policy string, more ...string) {
	f.t.Helper()
	text := strings.NewReplacer("NAME", name, "NAMESPACE", f.namespace, "WORKERS", fmt.Sprint(workers), "POLICY", policy, "MORE", strings.Join(more, ", "),
		"PLACE", string(placesOf(f.namespace)), "HOLLOW", hollow.Label).Replace(`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: NAME},
		spec: {runPolicy: {schedulingPolicy: POLICY}, pytorchReplicaSpecs: {
			Master: {replicas: 1, restartPolicy: OnFailure, template: {spec: {MORE nodeSelector: {HOLLOW: NODES}, containers: [{name: pytorch, image: i, command: [train], resources: {limits: {PLACE: 1}}}]}}},
			Worker: {replicas: WORKERS, restartPolicy: OnFailure, template: {spec: {MORE nodeSelector: {HOLLOW: NODES}, containers: [{name: pytorch, image: i, command: [train], resources: {limits: {PLACE: 1}}}]}}}}}}`)
	f.create(strings.ReplaceAll(text, "NODES", f.namespace))
}

func (f *floor) create(text string) {
	f.t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		f.t.Fatalf("%v: %s", err, text)
	}
	obj.SetNamespace(f.namespace)
	if err := f.client.Create(f.t.Context(), obj); err != nil {
		f.t.Fatal(err)
	}
}

// bound counts the Pods of a job that have a node.
func (f *floor) bound(job string) int {
	f.t.Helper()
	n := 0
	for _, p := range f.pods(job) {
		if p.Spec.NodeName != "" && p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			n++
		}
	}
	return n
}

func (f *floor) pods(job string) []corev1.Pod {
	f.t.Helper()
	var pods corev1.PodList
	if err := f.client.List(f.t.Context(), &pods, client.InNamespace(f.namespace), client.MatchingLabels{v1.LabelJobName: job}); err != nil {
		f.t.Fatal(err)
	}
	return pods.Items
}

// end gives replicas of a job an end, when their Pods run: until then their node
// writes to them too.
func (f *floor) end(job string, phase corev1.PodPhase, replicas ...string) {
	f.t.Helper()
	for _, r := range replicas {
		p := &corev1.Pod{}
		f.until(r+" does not run", func() bool {
			err := f.client.Get(f.t.Context(), client.ObjectKey{Namespace: f.namespace, Name: job + "-" + r}, p)
			return err == nil && p.Status.Phase == corev1.PodRunning
		})
		p.Status.Phase = phase
		if err := f.client.Status().Update(f.t.Context(), p); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *floor) job(name string) *v1.PyTorchJob {
	f.t.Helper()
	job := &v1.PyTorchJob{}
	if err := f.client.Get(f.t.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, job); err != nil {
		f.t.Fatal(err)
	}
	return job
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
	f.t.Fatalf("%s: %v", what, err)
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

// TestGangsShare has gangs of three run on four places: each runs, whole, one
// after the other.
func TestGangsShare(t *testing.T) {
	const gangs = 4
	f := newFloor(t, 1, "4")
	for i := range gangs {
		f.gang(fmt.Sprintf("j%d", i), 2, "{}")
	}
	over := map[string]bool{}
	for len(over) < gangs {
		running := ""
		f.until("no gang runs whole", func() bool {
			for i := range gangs {
				name := fmt.Sprintf("j%d", i)
				if !over[name] && f.bound(name) == 3 && f.job(name).Status.Is(v1.JobRunning) {
					running = name
				}
			}
			return running != ""
		})
		for i := range gangs {
			if name := fmt.Sprintf("j%d", i); name != running && f.bound(name) > 0 {
				t.Errorf("while %s runs, %s holds %d places", running, name, f.bound(name))
			}
		}
		f.end(running, corev1.PodSucceeded, "master-0", "worker-0", "worker-1")
		f.until("the job does not succeed", func() bool { return f.job(running).Status.Is(v1.JobSucceeded) })
		over[running] = true
	}
}

// TestGangScattered has three Pods that the sum of the nodes has room for, but
// no two nodes: none holds what another could use.
func TestGangScattered(t *testing.T) {
	f := newFloor(t, 2, "3")
	place := string(placesOf(f.namespace))
	pod := `{apiVersion: v1, kind: Pod, metadata: {name: NAME, labels: {GROUP}}, spec: {nodeSelector: {%s: %s}, containers: [{name: c, image: i, command: [c], resources: {limits: {%s: N}}}]}}`
	pod = fmt.Sprintf(pod, hollow.Label, f.namespace, place)
	f.create(`{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g}, spec: {minMember: 3, scheduleTimeoutSeconds: 600}}`)
	for i := range 3 {
		f.create(strings.NewReplacer("NAME", fmt.Sprintf("big-%d", i), "GROUP", "scheduling.x-k8s.io/pod-group: g", "N", "2").Replace(pod))
	}
	f.until("the third finds a node", func() bool { return f.told("big-", "Insufficient") })
	for i := range 2 {
		f.create(strings.NewReplacer("NAME", fmt.Sprintf("small-%d", i), "GROUP", "", "N", "3").Replace(pod))
	}
	f.until("a gang that does not fit holds places", func() bool {
		n := 0
		for i := range 2 {
			p := &corev1.Pod{}
			_ = f.client.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: fmt.Sprintf("small-%d", i)}, p)
			if p.Status.Phase == corev1.PodRunning {
				n++
			}
		}
		return n == 2
	})
}

// TestGangNowhere has gangs of which one Pod or all find no node, though the sum
// of the nodes has room for them: they hold no place that another could use, and
// no other waits behind them. Once there is a node, they run.
func TestGangNowhere(t *testing.T) {
	t.Parallel()
	for reason, nowhere := range map[string]int{"one": 1, "all": 4} {
		t.Run(reason, func(t *testing.T) {
			f := newFloor(t, 1, "4")
			pod := func(name, group, places, selector string) {
				f.create(fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {%s}}, spec: {nodeSelector: {%s: %s%s}, containers: [{name: c, image: i, command: [c], resources: {limits: {%s: %s}}}]}}`,
					name, group, hollow.Label, f.namespace, selector, placesOf(f.namespace), places))
			}
			read := func(name string) *corev1.Pod {
				p := &corev1.Pod{}
				if err := f.client.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, p); err != nil {
					t.Fatal(err)
				}
				return p
			}
			f.create(`{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g}, spec: {minMember: 4, scheduleTimeoutSeconds: 600}}`)
			for i := range 4 {
				selector := ""
				if i < nowhere {
					selector = ", diwan.dev/zone: z"
				}
				pod(fmt.Sprintf("g-%d", i), "scheduling.x-k8s.io/pod-group: g", "1", selector)
			}
			f.until("no Pod is told that it has no node", func() bool { return f.told("g-", "didn't match") })
			pod("alone", "", "4", "")
			f.until("a Pod that comes later does not run", func() bool { return read("alone").Status.Phase == corev1.PodRunning })

			if err := f.client.Delete(t.Context(), read("alone")); err != nil {
				t.Fatal(err)
			}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.namespace + "-0"}}
			if err := f.client.Patch(t.Context(), node, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"diwan.dev/zone": "z"}}}`))); err != nil {
				t.Fatal(err)
			}
			f.until("the gang does not run", func() bool {
				running := 0
				for i := range 4 {
					if read(fmt.Sprintf("g-%d", i)).Status.Phase == corev1.PodRunning {
						running++
					}
				}
				return running == 4
			})
		})
	}
}

// TestGangTimeout has a Pod find a node and wait for another that may not be
// placed yet: after the time that the group allows it lets go of its place.
func TestGangTimeout(t *testing.T) {
	f := newFloor(t, 1, "2")
	pod := func(name, group, places, gates string) {
		f.create(fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {%s}}, spec: {nodeSelector: {%s: %s}, %s containers: [{name: c, image: i, command: [c], resources: {limits: {%s: %s}}}]}}`,
			name, group, hollow.Label, f.namespace, gates, placesOf(f.namespace), places))
	}
	read := func(name string) *corev1.Pod {
		p := &corev1.Pod{}
		if err := f.client.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	f.create(`{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g}, spec: {minMember: 2, scheduleTimeoutSeconds: 1}}`)
	pod("later", "scheduling.x-k8s.io/pod-group: g", "1", "schedulingGates: [{name: diwan.dev/later}],")
	pod("waits", "scheduling.x-k8s.io/pod-group: g", "1", "")
	f.until("no Pod is told that its time is over", func() bool { return f.told("waits", "due to timeout after waiting 1s at plugin Gangs") })
	pod("alone", "", "2", "")
	f.until("a Pod that needs all places does not run", func() bool { return read("alone").Status.Phase == corev1.PodRunning })
	if err := f.client.Delete(t.Context(), read("alone")); err != nil {
		t.Fatal(err)
	}
	later := read("later")
	later.Spec.SchedulingGates = nil
	if err := f.client.Update(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	f.until("the gang does not run", func() bool {
		return read("later").Status.Phase == corev1.PodRunning && read("waits").Status.Phase == corev1.PodRunning
	})
}

// TestGangTooLarge equals upstream's end-to-end test of gangs: a job whose
// minAvailable is more than it has stays Created, and succeeds once it is put
// right.
func TestGangTooLarge(t *testing.T) {
	f := newFloor(t, 1, "4")
	f.gang("j", 2, "{minAvailable: 10}")
	f.until("no one is told why", func() bool {
		return f.told("j", "minAvailable is 10") && f.told("j", "has 3 of the 10 Pods")
	})
	if s := f.job("j").Status; f.bound("j") != 0 || !s.Is(v1.JobCreated) || s.Is(v1.JobRunning) {
		t.Errorf("%d Pods are placed, conditions %v", f.bound("j"), s.Conditions)
	}
	job := f.job("j")
	base := job.DeepCopy()
	job.Spec.RunPolicy.SchedulingPolicy.MinAvailable = new(int32)
	*job.Spec.RunPolicy.SchedulingPolicy.MinAvailable = 3
	if err := f.client.Patch(t.Context(), job, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
	f.until("the job does not run", func() bool { return f.bound("j") == 3 && f.job("j").Status.Is(v1.JobRunning) })
	f.end("j", corev1.PodSucceeded, "master-0", "worker-0", "worker-1")
	f.until("the job does not succeed", func() bool { return f.job("j").Status.Is(v1.JobSucceeded) })

	// Two more: one whose Pods are more than all nodes have, and one that asks
	// for more than its Pods do.
	f.gang("vast", 5, "{}")
	f.gang("greedy", 1, fmt.Sprintf("{minResources: {%s: 5}}", placesOf(f.namespace)))
	f.until("no one is told that they never fit", func() bool {
		return f.told("vast", "can never fit") && f.told("greedy", "can never fit")
	})
	f.gang("part", 5, "{minAvailable: 4}")
	f.until("a job does not run with those that it needs", func() bool { return f.bound("part") == 4 })
	if f.bound("vast")+f.bound("greedy") > 0 {
		t.Error("Pods are placed of gangs that do not fit")
	}
}

// TestGangUnknown has a Pod whose group comes late.
func TestGangUnknown(t *testing.T) {
	f := newFloor(t, 1, "4")
	f.create(fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: early, labels: {scheduling.x-k8s.io/pod-group: late}},
		spec: {nodeSelector: {%s: %s}, containers: [{name: main, image: i}]}}`, hollow.Label, f.namespace))
	f.until("no one is told what the Pod waits for", func() bool { return f.told("early", "late does not exist") })
	f.create("{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: late}, spec: {minMember: 1}}")
	f.until("the Pod finds no node", func() bool {
		pod := &corev1.Pod{}
		return f.client.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "early"}, pod) == nil && pod.Spec.NodeName != ""
	})
}

// TestGangMends has a gang of which one has succeeded and another failed: the
// failed one is replaced alone. Suspended, it holds nothing.
func TestGangMends(t *testing.T) {
	f := newFloor(t, 1, "4")
	f.gang("j", 2, "{}")
	f.until("the job does not run", func() bool { return f.bound("j") == 3 })
	f.end("j", corev1.PodSucceeded, "worker-0")
	f.end("j", corev1.PodFailed, "worker-1")
	f.until("the failed worker is not replaced", func() bool { return f.job("j").Status.Restarts == 1 && f.bound("j") == 2 })

	f.gang("next", 2, "{}")
	lost := &unstructured.Unstructured{}
	lost.SetAPIVersion("scheduling.x-k8s.io/v1alpha1")
	lost.SetKind("PodGroup")
	lost.SetNamespace(f.namespace)
	lost.SetName("next")
	f.until("there is no group", func() bool { return f.client.Delete(t.Context(), lost) == nil })
	f.until("the next does not wait", func() bool { return f.told("next", "does not fit on the free resources") })
	job := f.job("j")
	base := job.DeepCopy()
	yes := true
	job.Spec.RunPolicy.Suspend = &yes
	if err := f.client.Patch(t.Context(), job, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
	f.until("the next does not run", func() bool { return f.bound("next") == 3 })
	group := &unstructured.Unstructured{}
	group.SetAPIVersion("scheduling.x-k8s.io/v1alpha1")
	group.SetKind("PodGroup")
	f.until("the group of a suspended job stays", func() bool {
		return apierrors.IsNotFound(f.client.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "j"}, group))
	})
	f.until("a group does not say that it runs", func() bool {
		_ = f.client.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "next"}, group)
		phase, _, _ := unstructured.NestedString(group.Object, "status", "phase")
		running, _, _ := unstructured.NestedInt64(group.Object, "status", "running")
		return phase == "Running" && running == 3
	})
}

// TestGangPriority has a gang of a higher priority take the places of others,
// as many as it needs.
func TestGangPriority(t *testing.T) {
	f := newFloor(t, 1, "4")
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}, Value: 1000}
	if err := f.client.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.client.Delete(context.Background(), class) })
	f.gang("low", 2, "{}")
	f.until("the low one does not run", func() bool { return f.bound("low") == 3 })
	f.gang("high", 2, "{}", "priorityClassName: "+f.namespace+",")
	f.until("the high one does not run", func() bool { return f.bound("high") == 3 })
}

// TestVolcanoGroup has the scheduler honour Volcano's own terms.
func TestVolcanoGroup(t *testing.T) {
	f := newFloor(t, 1, "4")
	f.create(`{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g}, spec: {minMember: 2, queue: default}}`)
	group := &unstructured.Unstructured{}
	group.SetAPIVersion("scheduling.volcano.sh/v1beta1")
	group.SetKind("PodGroup")
	phase := func() string {
		_ = f.client.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "g"}, group)
		text, _, _ := unstructured.NestedString(group.Object, "status", "phase")
		return text
	}
	f.until("Pods are not asked for", func() bool { return phase() == "Inqueue" })
	for i := range 2 {
		f.create(strings.NewReplacer("I", fmt.Sprint(i), "HOLLOW", hollow.Label, "NODES", f.namespace).Replace(
			`{apiVersion: v1, kind: Pod, metadata: {name: p-I, annotations: {scheduling.k8s.io/group-name: g}}, spec: {schedulerName: volcano, nodeSelector: {HOLLOW: NODES}, containers: [{name: c, image: i, command: [c]}]}}`))
	}
	f.until("the group does not run", func() bool { return phase() == "Running" })
}
