// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

var epoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// A scene is written in words: containers before the bar are init containers, those
// after a second bar ephemeral ones, "*" marks a sidecar, and after the colon stands
// what is known:
//
//	new        never ran
//	up, ready  runs; has not or has passed its startup probe
//	0, 1, 137  ended with the code
//	1@5        ended with the code; 5 steps of back-off
//	wait       cannot start before a while
//
// and the decision is written as the actions "prepare", "start a b",
// "stop a b", "over", and the phase.
func scene(t interface{ Fatalf(string, ...any) }, words string) (*corev1.Pod, observed) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"}, Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}}
	o := observed{now: epoch.Add(time.Second), since: epoch, prepared: true, podIP: "10.0.0.2", hostIP: "10.0.0.1", containers: map[string]*view{}}
	always := corev1.ContainerRestartPolicyAlways
	init, main, both := strings.Cut(words, "|")
	if !both {
		init, main = "", words
	}
	add := func(list *[]corev1.Container, words string) {
		for word := range strings.FieldsSeq(words) {
			name, state, _ := strings.Cut(word, ":")
			c := corev1.Container{}
			if n, ok := strings.CutSuffix(name, "*"); ok {
				name, c.RestartPolicy = n, &always
			}
			c.Name = name
			*list = append(*list, c)
			o.containers[name] = viewOf(t, state)
		}
	}
	main, late, _ := strings.Cut(main, "|")
	add(&pod.Spec.InitContainers, init)
	add(&pod.Spec.Containers, main)
	var ephemeral []corev1.Container
	add(&ephemeral, late)
	for _, c := range ephemeral {
		pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon(c)})
	}
	return pod, o
}

func viewOf(t interface{ Fatalf(string, ...any) }, state string) *view {
	v := &view{}
	switch state {
	case "new":
	case "up":
		v.running = epoch
	case "ready":
		v.running, v.started, v.ready = epoch, true, true
	case "wait":
		v.waiting, v.retry = &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError"}, epoch.Add(5*time.Second)
	default:
		code, steps, _ := strings.Cut(state, "@")
		end := &corev1.ContainerStateTerminated{StartedAt: *stamp(epoch), FinishedAt: *stamp(epoch)}
		if _, err := fmt.Sscan(code, &end.ExitCode); err != nil {
			t.Fatalf("cannot read state %q", state)
		}
		if steps != "" {
			fmt.Sscan(steps, &v.backoff)
			v.restarts = int32(v.backoff)
		}
		v.ended = end
	}
	return v
}

func words(p plan) string {
	var all []string
	if p.prepare {
		all = append(all, "prepare")
	}
	if len(p.start) > 0 {
		all = append(all, "start "+strings.Join(p.start, " "))
	}
	if len(p.stop) > 0 {
		names := make([]string, len(p.stop))
		for i, s := range p.stop {
			names[i] = s.name
		}
		all = append(all, "stop "+strings.Join(names, " "))
	}
	if p.over {
		all = append(all, "over")
	}
	return strings.Join(append(all, string(p.status.Phase)), ", ")
}

func TestDecide(t *testing.T) {
	policy := func(p corev1.RestartPolicy) func(*corev1.Pod, *observed) {
		return func(pod *corev1.Pod, _ *observed) { pod.Spec.RestartPolicy = p }
	}
	deleted := func(pod *corev1.Pod, _ *observed) { pod.DeletionTimestamp = stamp(epoch.Add(30 * time.Second)) }
	cases := []struct {
		reason string
		scene  string
		change func(*corev1.Pod, *observed)
		want   string
	}{
		{"network and volumes come before the first container", "a:new", func(_ *corev1.Pod, o *observed) { o.prepared = false }, "prepare, Pending"},
		{"main containers start together", "a:new b:new", nil, "start a b, Pending"},
		{"a Pod runs once all main containers ran", "a:ready b:ready", nil, "Running"},
		{"until then it is pending", "a:ready b:wait", nil, "Pending"},
		{"what cannot start is not started before its time", "a:wait", nil, "Pending"},
		{"success of all is success", "a:0 b:0", nil, "over, Succeeded"},
		{"one failure is failure", "a:0 b:1", nil, "over, Failed"},
		{"the others go on when one has failed", "a:1 b:ready", nil, "Running"},
		{"init containers go one by one", "i:new j:new | a:new", nil, "start i, Pending"},
		{"the next starts when one is done", "i:0 j:new | a:new", nil, "start j, Pending"},
		{"main containers wait for all of them", "i:0 j:up | a:new", nil, "Pending"},
		{"then they start", "i:0 j:0 | a:new", nil, "start a, Pending"},
		{"a failed init container fails the Pod", "i:1 | a:new", nil, "over, Failed"},
		{"unless it may be restarted", "i:1 | a:new", policy(corev1.RestartPolicyOnFailure), "start i, Pending"},
		{"with Always, too, it ends with its success", "i:0 | a:new", policy(corev1.RestartPolicyAlways), "start a, Pending"},
		{"a sidecar is waited for until it has started", "s*:up | a:new", nil, "Pending"},
		{"and not until it ends", "s*:ready | a:new", nil, "start a, Pending"},
		{"a sidecar that ended starts again", "s*:0 | a:ready", nil, "start s, Running"},
		{"even before the next init container", "s*:1 i:new | a:new", nil, "start s, Pending"},
		{"when the main containers are done sidecars end, the last first", "s*:ready r*:ready | a:0", nil, "stop r, Running"},
		{"one after the other", "s*:ready r*:0 | a:0", nil, "stop s, Running"},
		{"and then the Pod is over", "s*:143 r*:0 | a:0", nil, "over, Succeeded"},
		{"sidecars also end when an init container failed", "s*:ready i:1 | a:new", nil, "stop s, Pending"},
		{"OnFailure restarts a failure", "a:1 b:0", policy(corev1.RestartPolicyOnFailure), "start a, Running"},
		{"OnFailure leaves a success", "a:0", policy(corev1.RestartPolicyOnFailure), "over, Succeeded"},
		{"Always restarts a success", "a:0", policy(corev1.RestartPolicyAlways), "start a, Running"},
		{"the second restart waits", "a:1@1", policy(corev1.RestartPolicyAlways), "Running"},
		{"for ten seconds", "a:1@1", func(p *corev1.Pod, o *observed) {
			p.Spec.RestartPolicy, o.now = corev1.RestartPolicyAlways, epoch.Add(10*time.Second)
		}, "start a, Running"},
		{"a run of ten minutes makes the next restart immediate", "a:1@5", func(p *corev1.Pod, o *observed) {
			p.Spec.RestartPolicy = corev1.RestartPolicyAlways
			o.containers["a"].ended.StartedAt = *stamp(epoch.Add(-10 * time.Minute))
		}, "start a, Running"},
		{"a deleted Pod ends its main containers first", "s*:ready | a:ready b:ready", deleted, "stop a b, Running"},
		{"then its sidecars", "s*:ready | a:143 b:0", deleted, "stop s, Running"},
		{"and starts nothing", "a:new", deleted, "over, Failed"},
		{"a Pod that ended well before its deletion did succeed", "a:0", deleted, "over, Succeeded"},
		{"a container that is being started is waited for", "a:new", func(p *corev1.Pod, o *observed) {
			deleted(p, o)
			o.containers["a"].starting = true
		}, "Pending"},
		{"the deadline ends the Pod", "a:ready", func(p *corev1.Pod, _ *observed) { p.Spec.ActiveDeadlineSeconds = new(int64) }, "stop a, Running"},
		{"as Failed", "a:143", func(_ *corev1.Pod, o *observed) { o.failure = &failure{reason: "DeadlineExceeded"} }, "over, Failed"},
		{"who was done before the deadline succeeded", "a:0", func(p *corev1.Pod, _ *observed) { p.Spec.ActiveDeadlineSeconds = new(int64) }, "over, Succeeded"},
		{"an evicted Pod ends", "a:ready", func(_ *corev1.Pod, o *observed) { o.failure = &failure{reason: "Evicted"} }, "stop a, Running"},
		{"what is final stays final", "a:ready", func(p *corev1.Pod, _ *observed) { p.Status.Phase = corev1.PodFailed }, "stop a, Failed"},
		{"an unhealthy run ends", "a:ready", func(_ *corev1.Pod, o *observed) {
			o.containers["a"].unhealthy = &corev1.ContainerStateTerminated{}
		}, "stop a, Running"},
		{"an ephemeral container starts beside the others", "| a:ready | e:new", nil, "start e, Running"},
		{"also while the Pod initializes", "i:up | a:new | e:new", nil, "start e, Pending"},
		{"and with it", "i:new | a:new | e:new", nil, "start e i, Pending"},
		{"but not before network and volumes", "| a:new | e:new", func(_ *corev1.Pod, o *observed) { o.prepared = false }, "prepare, Pending"},
		{"it never starts again", "| a:ready | e:1", policy(corev1.RestartPolicyAlways), "Running"},
		{"the Pod does not wait for it", "| a:0 | e:ready", nil, "stop e, Running"},
		{"nor fail with it", "| a:0 | e:137", nil, "over, Succeeded"},
		{"it ends before the sidecars", "s*:ready | a:0 | e:up", nil, "stop e, Running"},
		{"and with a deleted Pod", "| a:ready | e:ready", deleted, "stop a e, Running"},
		{"a container's own policy goes before the Pod's", "a:1", func(p *corev1.Pod, _ *observed) {
			always := corev1.ContainerRestartPolicyAlways
			p.Spec.Containers[0].RestartPolicy = &always
		}, "start a, Running"},
		{"and its rules before its policy", "a:42 b:0", func(p *corev1.Pod, _ *observed) {
			p.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestart,
				ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}}}}
		}, "start a, Running"},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			pod, o := scene(t, tc.scene)
			if tc.change != nil {
				tc.change(pod, &o)
			}
			if diff := cmp.Diff(tc.want, words(decide(pod, o))); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tc.scene, diff)
			}
		})
	}
}

func TestBackoff(t *testing.T) {
	var delays []time.Duration
	v := &view{}
	for range 8 {
		v.backoff = nextBackoff(v)
		v.ended = &corev1.ContainerStateTerminated{ExitCode: 1}
		delays = append(delays, delayAfter(v)/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{0, 10, 20, 40, 80, 160, 300, 300}, delays); diff != "" {
		t.Errorf("the delays before restarts, in seconds (-want +got):\n%s", diff)
	}
}

func TestStates(t *testing.T) {
	pod, o := scene(t, "i:0 | a:1@1 b:wait c:ready")
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	s := decide(pod, o).status
	if c := s.ContainerStatuses[0]; c.State.Waiting == nil || c.State.Waiting.Reason != "CrashLoopBackOff" ||
		c.State.Waiting.Message != "back-off 10s restarting failed container=a pod=p_ns(u)" || c.LastTerminationState.Terminated == nil || c.RestartCount != 1 {
		t.Errorf("a container in back-off: %+v", c)
	}
	if c := s.ContainerStatuses[1]; c.State.Waiting == nil || c.State.Waiting.Reason != "CreateContainerConfigError" {
		t.Errorf("a container that cannot start: %+v", c)
	}
	if c := s.ContainerStatuses[2]; c.State.Running == nil || !c.Ready || !*c.Started {
		t.Errorf("a running container: %+v", c)
	}
	if c := s.InitContainerStatuses[0]; c.State.Terminated == nil || !c.Ready {
		t.Errorf("an init container that is done: %+v", c)
	}
	want := map[corev1.PodConditionType]string{
		corev1.PodReadyToStartContainers: "True  ", corev1.PodInitialized: "True  ",
		corev1.ContainersReady: "False ContainersNotReady containers with unready status: [a b]",
		corev1.PodReady:        "False ContainersNotReady containers with unready status: [a b]",
	}
	got := map[corev1.PodConditionType]string{}
	for _, c := range s.Conditions {
		got[c.Type] = fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// TestInitialized wants a Pod to be initialized when its last init container has ended.
func TestInitialized(t *testing.T) {
	for text, want := range map[string]string{
		"i:ready | a:new":         "False ContainersNotInitialized containers with incomplete status: [i]",
		"i:0 s*:up j:new | a:new": "False ContainersNotInitialized containers with incomplete status: [s j]",
		"i:0 s*:ready | a:new":    "True  ",
		"i:0 s*:up | a:ready":     "True  ",
	} {
		pod, o := scene(t, text)
		got := ""
		for _, c := range decide(pod, o).status.Conditions {
			if c.Type == corev1.PodInitialized {
				got = fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
			}
		}
		if got != want {
			t.Errorf("%s: initialized is %q, want %q", text, got, want)
		}
	}
}

// TestStatesOfEndedPods holds main containers that never ran to a kubelet's words: they
// wait where an init container failed, and are unknown where they could have started.
func TestStatesOfEndedPods(t *testing.T) {
	pod, o := scene(t, "i:1 j:new | a:new")
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	s := decide(pod, o).status
	if s.Phase != corev1.PodFailed {
		t.Errorf("the Pod is %s", s.Phase)
	}
	for _, c := range []corev1.ContainerStatus{s.InitContainerStatuses[1], s.ContainerStatuses[0]} {
		if c.State.Waiting == nil || c.State.Waiting.Reason != "PodInitializing" {
			t.Errorf("container %s after a failed init container: %+v", c.Name, c.State)
		}
	}
	pod, o = scene(t, "i:0 | a:1 b:new")
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.DeletionTimestamp = stamp(epoch)
	if c := decide(pod, o).status.ContainerStatuses[1]; c.State.Terminated == nil || c.State.Terminated.Reason != "ContainerStatusUnknown" {
		t.Errorf("a container of a deleted Pod that could have started: %+v", c.State)
	}
}

// TestDecideAlways holds decide to what must be true of every Pod.
func TestDecideAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := rapid.SampledFrom([]string{"new", "up", "ready", "0", "1", "1@1", "0@7", "137@2", "wait"})
		var text strings.Builder
		for i := range rapid.IntRange(0, 3).Draw(t, "init") {
			star := rapid.SampledFrom([]string{"", "*"}).Draw(t, "star")
			fmt.Fprintf(&text, "i%d%s:%s ", i, star, state.Draw(t, "state"))
		}
		text.WriteString("|")
		for i := range rapid.IntRange(1, 3).Draw(t, "main") {
			fmt.Fprintf(&text, " c%d:%s", i, state.Draw(t, "state"))
		}
		pod, o := scene(t, text.String())
		pod.Spec.RestartPolicy = rapid.SampledFrom([]corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}).Draw(t, "policy")
		o.prepared = rapid.Bool().Draw(t, "prepared")
		if rapid.Bool().Draw(t, "deleted") {
			pod.DeletionTimestamp = stamp(epoch.Add(30 * time.Second))
		}
		if rapid.Bool().Draw(t, "evicted") {
			o.failure = &failure{reason: "Evicted"}
		}
		before := pod.DeepCopy()
		p := decide(pod, o)

		if !apiequality.Semantic.DeepEqual(before, pod) {
			t.Fatal("decide changed the Pod")
		}
		if q := decide(pod, o); !apiequality.Semantic.DeepEqual(p.status, q.status) || words(p) != words(q) {
			t.Fatal("decide says two things of the same")
		}
		again := pod.DeepCopy()
		again.Status = p.status
		later := o
		later.now = o.now.Add(10 * time.Millisecond)
		if q := decide(again, later); !apiequality.Semantic.DeepEqual(p.status, q.status) {
			t.Fatalf("a reported status is reported differently:\n%s", cmp.Diff(p.status, q.status))
		}
		living := 0
		for _, v := range o.containers {
			if v.live() {
				living++
			}
		}
		if p.over != isFinal(p.status.Phase) {
			t.Fatalf("over is %v in phase %s", p.over, p.status.Phase)
		}
		if p.over && (living > 0 || len(p.start) > 0) {
			t.Fatalf("%s is over with %d living containers and starts %v", text.String(), living, p.start)
		}
		for _, name := range p.start {
			if v := o.containers[name]; v.live() || !o.prepared || pod.DeletionTimestamp != nil || o.failure != nil {
				t.Fatalf("%s must not be started", name)
			}
			if pod.Spec.RestartPolicy == corev1.RestartPolicyNever && o.containers[name].ended != nil && !isSidecar(containerOf(pod, name)) {
				t.Fatalf("%s ended, and is started although it must not be restarted", name)
			}
		}
		for _, s := range p.stop {
			if o.containers[s.name].running.IsZero() {
				t.Fatalf("%s does not run and is stopped", s.name)
			}
		}
		waits := false
		for _, v := range o.containers {
			waits = waits || dueTime(v).After(o.now)
		}
		if !p.over && living == 0 && len(p.start) == 0 && !p.prepare && (p.wake.IsZero() || !waits) {
			t.Fatalf("%s: nothing lives, nothing is done, and nothing will ever happen (%s)", text.String(), words(p))
		}
	})
}
