// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

func TestKeyOf(t *testing.T) {
	t.Parallel()
	cases := []struct {
		reason              string
		labels, annotations map[string]string
		want                string
	}{
		{"a Pod without a group", nil, nil, " "},
		{"coscheduling", map[string]string{"scheduling.x-k8s.io/pod-group": "g"}, nil, "scheduling.x-k8s.io g"},
		{"Volcano", nil, map[string]string{"scheduling.k8s.io/group-name": "g"}, "scheduling.volcano.sh g"},
		{"Volcano's other name", nil, map[string]string{"scheduling.volcano.sh/group-name": "g"}, "scheduling.volcano.sh g"},
		{"no name", map[string]string{"scheduling.x-k8s.io/pod-group": ""}, map[string]string{"scheduling.k8s.io/group-name": ""}, " "},
	}
	for _, tc := range cases {
		key, ok := KeyOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Labels: tc.labels, Annotations: tc.annotations}})
		if got := key.API.Group + " " + key.Name; got != tc.want || ok != (tc.want != " ") {
			t.Errorf("%s: %q, %v", tc.reason, got, ok)
		}
	}
}

// TestCalls holds that a change of a group calls no Pods but its own, and none
// that Kubernetes' own scheduling places.
func TestCalls(t *testing.T) {
	t.Parallel()
	own := "g"
	cases := []struct {
		reason, group string
		labels        map[string]string
		spec          corev1.PodSpec
		want          fwk.QueueingHint
	}{
		{"its own Pod", "g", map[string]string{coschedulingLabel: "g"}, corev1.PodSpec{}, fwk.Queue},
		{"another group", "h", map[string]string{coschedulingLabel: "g"}, corev1.PodSpec{}, fwk.QueueSkip},
		{"a Pod of none", "g", nil, corev1.PodSpec{}, fwk.QueueSkip},
		{"a Pod of Kubernetes' own group", "g", map[string]string{coschedulingLabel: "g"}, corev1.PodSpec{SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &own}}, fwk.QueueSkip},
	}
	for _, tc := range cases {
		group := &unstructured.Unstructured{}
		group.SetNamespace("n")
		group.SetName(tc.group)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Labels: tc.labels}, Spec: tc.spec}
		if got, err := ofItsGroup(Coscheduling)(klog.Background(), pod, nil, group); got != tc.want || err != nil {
			t.Errorf("%s: %v, %v", tc.reason, got, err)
		}
		if got, _ := ofItsGroup(Volcano)(klog.Background(), pod, nil, group); got != fwk.QueueSkip {
			t.Errorf("%s, of another API: %v", tc.reason, got)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	cases := []struct {
		reason, spec string
		want         Group
	}{
		{"nothing is said", "{}", Group{Min: 1, Timeout: time.Minute, Resources: amounts{}}},
		{"all is said", "{minMember: 3, scheduleTimeoutSeconds: 9, priorityClassName: p, minResources: {cpu: 1500m, memory: 1Gi, a/b: 2}}",
			Group{Min: 3, Timeout: 9 * time.Second, PriorityClass: "p", Resources: amounts{"cpu": 1500, "memory": 1 << 30, "a/b": 2}}},
		{"what makes no sense counts as not said", "{minMember: -3, scheduleTimeoutSeconds: -1, priorityClassName: 7, minResources: {cpu: much}}",
			Group{Min: 1, Timeout: time.Minute, Resources: amounts{}}},
		{"nor does it break", "[]", Group{Min: 1, Timeout: time.Minute, Resources: amounts{}}},
	}
	for _, tc := range cases {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		text, err := yaml.YAMLToJSON([]byte(fmt.Sprintf("{apiVersion: a/b, kind: PodGroup, spec: %s}", tc.spec)))
		if err != nil {
			t.Fatal(err)
		}
		if err := object.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, read(Key{}, object)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
		}
	}
}

// pods makes Pods that ask for so many processors.
func pods(cpus ...string) []*corev1.Pod {
	var all []*corev1.Pod
	for i, cpu := range cpus {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(i))}, Spec: corev1.PodSpec{Containers: []corev1.Container{{}}}}
		if cpu != "0" {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
		}
		all = append(all, p)
	}
	return all
}

func TestDecisions(t *testing.T) {
	t.Parallel()
	key := Key{Coscheduling, "n", "g"}
	four := room{all: amounts{"cpu": 4000, "pods": 10}, free: amounts{"cpu": 2000, "pods": 10}}
	cases := []struct {
		reason       string
		min          int
		resources    amounts
		members      members
		waits, lacks string
		hopeless     bool
		whole        bool
		phase        string
	}{
		{"the Pods are not all there", 3, nil, members{free: pods("1", "1")}, "has 2 of the 3 Pods", "", false, false, "Pending"},
		{"all are there, and fit", 2, nil, members{free: pods("1", "1")}, "", "", false, false, "Pending"},
		{"there is no room now", 3, nil, members{free: pods("1", "1", "1")}, "", "3 cpu (have 2)", false, false, "Pending"},
		{"there never will be", 3, nil, members{free: pods("1", "2", "2")}, "", "can never fit", true, false, "Pending"},
		{"the smallest are enough", 2, nil, members{free: pods("4", "1", "1")}, "", "", false, false, "Pending"},
		{"Pods that ask for nothing need none", 2, nil, members{free: pods("0", "0", "9")}, "", "", false, false, "Pending"},
		{"more is to be free than the Pods ask for", 1, amounts{"cpu": 3000}, members{free: pods("1")}, "", "3 cpu (have 2)", false, false, "Pending"},
		{"a kind that no node has", 1, amounts{"nvidia.com/gpu": 1}, members{free: pods("1")}, "", "can never fit on the nodes: its 1 Pods need 1 nvidia.com/gpu (have 0)", true, false, "Pending"},
		{"some hold a place", 3, nil, members{free: pods("0", "0", "0"), held: 2}, "", "", false, false, "Pending"},
		{"all hold a place", 3, nil, members{free: pods("0", "0", "0"), held: 3}, "", "", false, true, "Pending"},
		{"it is placed, the rest comes alone", 3, nil, members{bound: pods("1"), free: pods("4")}, "", "", false, true, "Scheduling"},
		{"who has succeeded counts", 3, nil, members{free: pods("1", "1"), succeeded: 1}, "", "", false, false, "Pending"},
		{"it runs", 2, nil, members{bound: pods("1", "1"), running: 2}, "", "", false, true, "Running"},
		{"it is bound", 2, nil, members{bound: pods("1", "1"), running: 1}, "", "", false, true, "Scheduling"},
		{"it is over", 2, nil, members{succeeded: 2}, "", "", false, true, "Finished"},
		{"it has failed", 2, nil, members{failed: 1, succeeded: 1}, "has 1 of the 2", "", false, false, "Failed"},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			g := Group{Key: key, Min: tc.min, Resources: tc.resources}
			lack, hopeless := "", false
			waits := g.waitsFor(tc.members)
			if waits == "" {
				lack, hopeless = g.fits(tc.members, four)
			}
			if !has(waits, tc.waits) || !has(lack, tc.lacks) || hopeless != tc.hopeless {
				t.Errorf("waits for %q, lacks %q, hopeless %v", waits, lack, hopeless)
			}
			if whole, phase := g.whole(tc.members), g.phase(tc.members, four.all); whole != tc.whole || phase != tc.phase {
				t.Errorf("whole %v, phase %s", whole, phase)
			}
		})
	}
}

func TestLacksNode(t *testing.T) {
	t.Parallel()
	g := Group{Min: 3}
	cases := []struct {
		reason  string
		members members
		pod     types.UID
		want    bool
	}{
		{"nobody has been tried", members{free: pods("1", "1", "1")}, "0", false},
		{"another found no node", members{free: pods("1", "1", "1"), nowhere: []types.UID{"1"}}, "0", true},
		{"the one that found none is tried again", members{free: pods("1", "1", "1"), nowhere: []types.UID{"1"}}, "1", false},
		{"there are others", members{free: pods("1", "1", "1", "1"), nowhere: []types.UID{"1"}}, "0", false},
		{"one has succeeded", members{free: pods("1", "1", "1"), succeeded: 1, nowhere: []types.UID{"1"}}, "0", false},
		{"two found none, and one of them is tried", members{free: pods("1", "1", "1"), nowhere: []types.UID{"1", "2"}}, "1", true},
		{"the group is placed", members{bound: pods("1"), free: pods("1", "1"), nowhere: []types.UID{"1"}}, "0", false},
	}
	for _, tc := range cases {
		if got := g.lacksNode(tc.members, tc.pod); got != tc.want {
			t.Errorf("%s: %v", tc.reason, got)
		}
	}
}

// has reports whether text has words, and is empty if there are none.
func has(text, words string) bool {
	return strings.Contains(text, words) && (text == "") == (words == "")
}

func TestVolcanoPhases(t *testing.T) {
	t.Parallel()
	g := Group{Key: Key{Volcano, "n", "g"}, Min: 2, Resources: amounts{"cpu": 4000}}
	if got := g.phase(members{}, amounts{"cpu": 3000}); got != "Pending" {
		t.Errorf("a group that never fits is %s", got)
	}
	for want, m := range map[string]members{
		"Inqueue": {}, "Running": {bound: pods("1", "1")}, "Unknown": {bound: pods("1")}, "Completed": {succeeded: 2},
	} {
		if got := g.phase(m, amounts{"cpu": 4000}); got != want {
			t.Errorf("%+v is %s, want %s", m, got, want)
		}
	}
}

// TestLeastIsABound holds that no choice of Pods does with less than least says,
// so that no gang is sent away that would fit.
func TestLeastIsABound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cpus := rapid.SliceOfN(rapid.SampledFrom([]string{"0", "500m", "1", "2", "7"}), 1, 8).Draw(t, "cpus")
		all := pods(cpus...)
		chosen := rapid.Permutation(all).Draw(t, "order")[:rapid.IntRange(0, len(all)).Draw(t, "n")]
		sum := amounts{}
		for _, p := range chosen {
			for name, value := range requestsOf(p) {
				sum[name] += value
			}
		}
		if lack := sum.lacking(least(all, len(chosen))); lack != "" {
			t.Fatalf("%d of %v: a choice does without %s", len(chosen), cpus, lack)
		}
	})
}

// TestOrder holds that the queue's order is one: of any two that differ one is
// before the other, and the Pods of a group are next to each other.
func TestOrder(t *testing.T) {
	t.Parallel()
	draw := rapid.Custom(func(t *rapid.T) place {
		group := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "group")
		p := place{priority: rapid.Int32Range(0, 1).Draw(t, "priority"), group: group}
		p.queued = time.Unix(rapid.Int64Range(0, 3).Draw(t, "queued"), 0)
		p.since = p.queued
		if group != "" { // both groups are of one second
			p.priority, p.since = 0, time.Unix(1, 0)
		}
		return p
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := draw.Draw(t, "a"), draw.Draw(t, "b"), draw.Draw(t, "c")
		if a.before(b) && b.before(a) || a != b && !a.before(b) && !b.before(a) {
			t.Fatalf("%v and %v have no order", a, b)
		}
		if a.before(b) && b.before(c) && !a.before(c) {
			t.Fatalf("%v, %v, %v go in a circle", a, b, c)
		}
		if a.group != "" && a.group == c.group && a.before(b) && b.before(c) && b.group != a.group {
			t.Fatalf("%v is between %v and %v", b, a, c)
		}
	})
}

func TestDefinitions(t *testing.T) {
	t.Parallel()
	all, err := Definitions()
	if err != nil || len(all) != 2 {
		t.Fatalf("%d definitions: %v", len(all), err)
	}
	for i, d := range all {
		if d.Spec.Group != apis[i].Group || d.Spec.Versions[0].Name != apis[i].Version || d.Spec.Names.Plural != apis[i].Resource {
			t.Errorf("%s is not %v", d.Name, apis[i])
		}
	}
}
