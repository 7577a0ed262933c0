// SPDX-License-Identifier: Apache-2.0

package podlog

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobset "diwan.dev/diwan/api/jobset/v1alpha2"
	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func pod(name string, age int, labels ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-time.Duration(age) * time.Minute)), Labels: map[string]string{}, Annotations: map[string]string{}}}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		if key == batchv1.JobCompletionIndexAnnotation {
			p.Annotations[key] = value
		}
		p.Labels[key] = value
	}
	return p
}

func TestOrder(t *testing.T) {
	t.Parallel()
	role, index := v1.LabelReplicaType, v1.LabelReplicaIndex
	kinds := Kinds{{RoleLabel: role, IndexLabel: index}, {RoleLabel: jobset.LabelReplicatedJobName}}
	completion, replicated := batchv1.JobCompletionIndexAnnotation, jobset.LabelReplicatedJobName
	for name, tc := range map[string]struct {
		reason  string
		pods    []*corev1.Pod
		primary map[string]string
		want    string
	}{
		"Master":      {reason: "The master prints the metric", pods: []*corev1.Pod{pod("x-worker-0", 0, role+"=worker", index+"=0"), pod("x-master-0", 0, role+"=master", index+"=0")}, want: "x-master-0 x-worker-0"},
		"Launcher":    {reason: "Under MPI the launcher has the output of all", pods: []*corev1.Pod{pod("x-worker-0", 0, role+"=worker"), pod("x-launcher", 0, role+"=launcher")}, want: "x-launcher x-worker-0"},
		"Servers":     {reason: "A parameter server prints nothing of interest", pods: []*corev1.Pod{pod("x-ps-0", 0, role+"=ps"), pod("x-worker-1", 0, role+"=worker", index+"=1"), pod("x-worker-0", 0, role+"=worker", index+"=0")}, want: "x-worker-0 x-worker-1 x-ps-0"},
		"Nodes":       {reason: "The first node, and not what fetched its data", pods: []*corev1.Pod{pod("a", 5, replicated+"=dataset-initializer", completion+"=0"), pod("b", 0, replicated+"=node", completion+"=1"), pod("c", 0, replicated+"=node", completion+"=0")}, want: "c b a"},
		"Retries":     {reason: "Of several runs the last", pods: []*corev1.Pod{pod("old", 9), pod("new", 1)}, want: "new old"},
		"TrialSays":   {reason: "A trial knows whose metrics count", pods: []*corev1.Pod{pod("x-master-0", 0, role+"=master"), pod("x-worker-0", 0, role+"=worker")}, primary: map[string]string{role: "worker"}, want: "x-worker-0 x-master-0"},
		"TenthIsLast": {reason: "Indices are numbers", pods: []*corev1.Pod{pod("x-10", 0, role+"=worker", index+"=10"), pod("x-9", 0, role+"=worker", index+"=9")}, want: "x-9 x-10"},
	} {
		var list []candidate
		for _, p := range tc.pods {
			list = append(list, kinds.candidateOf(p, tc.primary))
		}
		order(list)
		var got []string
		for _, c := range list {
			got = append(got, c.name)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %s: got %v, want %s", name, tc.reason, got, tc.want)
		}
	}
}

func TestRecordedAs(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason, pod string
		ok          bool
		role        string
		index       int
	}{
		{"a Pod of its own", "digits", true, "", 0},
		{"a Job's", "digits-x7k2p", true, "", 0},
		{"an indexed Job's", "digits-12-x7k2p", true, "", 12},
		{"a training job's", "digits-master-0", true, "master", 0},
		{"a JobSet's", "digits-node-0-3-x7k2p", true, "node", 3},
		{"a launcher, of which there is one", "digits-launcher", true, "launcher", 0},
		{"an initializer's", "digits-dataset-initializer-0-0-x7k2p", true, "dataset-initializer", 0},
		{"a trial's of an experiment of the name", "digits-0irjb96n-k2vhb", false, "", 0},
		{"another's", "digitsx-x7k2p", false, "", 0},
	} {
		got, ok := recordedAs(tc.pod, "digits", noon)
		if ok != tc.ok || ok && (got.role != tc.role || got.index != tc.index) {
			t.Errorf("%s: recordedAs(%s) = role %q, index %d, %t", tc.reason, tc.pod, got.role, got.index, ok)
		}
	}
}

func TestMainContainer(t *testing.T) {
	t.Parallel()
	base := corev1.PodSpec{InitContainers: []corev1.Container{{Name: "init"}}, Containers: []corev1.Container{{Name: "a"}, {Name: "b"}}}
	failed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for name, tc := range map[string]struct {
		reason      string
		annotations map[string]string
		status      corev1.PodStatus
		hint, want  string
	}{
		"First":      {reason: "As kubectl does", want: "a"},
		"Hint":       {reason: "The container that trains", hint: "b", want: "b"},
		"WrongHint":  {reason: "A hint that the Pod does not know is none", hint: "z", want: "a"},
		"Annotation": {reason: "The Pod's own default", annotations: map[string]string{"kubectl.kubernetes.io/default-container": "b"}, want: "b"},
		"Init": {reason: "The one that keeps the others from starting", want: "init",
			status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{Name: "init", State: failed}}}},
		"InitAgain": {reason: "It failed, and ran again", want: "a",
			status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{Name: "init", State: failed}}, ContainerStatuses: []corev1.ContainerStatus{{Name: "a", State: running}}}},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}, Spec: base, Status: tc.status}
		if got := mainContainer(p, tc.hint); got != tc.want {
			t.Errorf("%s: %s: got %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}

func TestTopmost(t *testing.T) {
	t.Parallel()
	m := func(uid, owner types.UID) match { return match{name: "x", uid: uid, owner: owner} }
	for _, tc := range []struct {
		reason    string
		all, want []match
	}{
		{"what a TrainJob made is the TrainJob's", []match{m("jobset", "trainjob"), m("trainjob", "")}, []match{m("trainjob", "")}},
		{"two versions of an object are one", []match{m("mpi", ""), m("mpi", "")}, []match{m("mpi", "")}},
		{"what an unrelated object made counts", []match{m("job", "cronjob"), m("trainjob", "")}, []match{m("job", "cronjob"), m("trainjob", "")}},
	} {
		if diff := cmp.Diff(tc.want, topmost(tc.all), cmp.AllowUnexported(match{})); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
		}
	}
}

func TestPrintTail(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason, in string
		lines      int64
		want       string
	}{
		{"lines that end", "a\nb\nc\n", 2, "b\nc\n"},
		{"a last line without an end", "a\nb\nc", 2, "b\nc"},
		{"fewer than asked for", "a\n", 5, "a\n"},
		{"none", "a\n", 0, ""},
		{"an empty log", "", 3, ""},
	} {
		var out strings.Builder
		if err := printTail(strings.NewReader(tc.in), tc.lines, &out); err != nil || out.String() != tc.want {
			t.Errorf("%s: got %q, %v; want %q", tc.reason, out.String(), err, tc.want)
		}
	}
}
