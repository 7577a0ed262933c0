// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/internal/platform/node"
	"diwan.dev/diwan/internal/platform/node/rootless"
	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
)

func TestQuickPodCostsOneWrite(t *testing.T) {
	b := newBench(t, func(c *node.Config) { c.StatusHold = time.Minute })
	pod := b.create(b.pod("echo loss=0.1"))
	done, versions := b.await(pod, "done", func(p *corev1.Pod) bool { return p != nil && p.Status.Phase == corev1.PodSucceeded })
	if versions != 1 {
		t.Errorf("the status was written %d times, want once", versions)
	}
	if got := b.log(pod, "main", 0); got != "loss=0.1\n" {
		t.Errorf("log %q", got)
	}
	s := done.Status.ContainerStatuses[0]
	end := s.State.Terminated
	if end == nil || end.Reason != "Completed" || end.StartedAt.IsZero() || end.FinishedAt.IsZero() || s.ImageID != "host" ||
		!strings.HasPrefix(s.ContainerID, "process://") || done.Status.PodIP == "" || done.Status.StartTime == nil {
		t.Errorf("status %+v", done.Status)
	}
}

func TestOutcomes(t *testing.T) {
	cases := map[string]struct {
		reason  string
		change  func(*corev1.Pod)
		phase   corev1.PodPhase
		code    int32
		cause   string
		message string
	}{
		"failure": {"the code is the program's", func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"sh", "-c", "exit 3"} }, corev1.PodFailed, 3, "Error", ""},
		"unknown program": {"the message names it", func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"no-such-program"} },
			corev1.PodFailed, 127, "ContainerCannotRun", "no-such-program"},
		"last words": {"what the program leaves in its message file is the message",
			func(p *corev1.Pod) {
				p.Spec.Containers[0].Command = []string{"sh", "-c", "echo farewell >/dev/termination-log"}
			},
			corev1.PodSucceeded, 0, "Completed", "farewell\n"},
		"last output": {"else the end of the output, where the policy says so",
			func(p *corev1.Pod) {
				p.Spec.Containers[0].Command = []string{"sh", "-c", "echo traceback; exit 1"}
				p.Spec.Containers[0].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
			}, corev1.PodFailed, 1, "Error", "traceback\n"},
		"host name and addresses": {"a Pod knows its name and its address",
			func(p *corev1.Pod) {
				p.Spec.Hostname = "someone"
				p.Spec.Containers[0].Command = []string{"sh", "-c", `test "$(hostname)" = someone && test -n "$IP"`}
				p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}}
			}, corev1.PodSucceeded, 0, "Completed", ""},
		"user": {"a container can run as another user",
			func(p *corev1.Pod) {
				user := int64(12345)
				p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: &user}
				p.Spec.Containers[0].Command = []string{"sh", "-c", `test "$(id -u)" = 12345`}
			}, corev1.PodSucceeded, 0, "Completed", ""},
	}
	b := newBench(t, nil)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "user" || name == "last words" || strings.HasPrefix(name, "host name") {
				rootlesstest.NeedNamespaces(t)
			}
			b := &bench{t: t, client: b.client, namespace: b.namespace, cfg: b.cfg}
			pod := b.pod("")
			tc.change(pod)
			done := b.awaitPhase(b.create(pod), tc.phase)
			end := done.Status.ContainerStatuses[0].State.Terminated
			if end == nil || end.ExitCode != tc.code || end.Reason != tc.cause || !strings.Contains(end.Message, tc.message) {
				t.Errorf("%s: %+v; log %q", tc.reason, end, b.log(done, "main", 0))
			}
		})
	}
}

func TestVolumes(t *testing.T) {
	rootlesstest.NeedNamespaces(t)
	b := newBench(t, nil)
	ctx := t.Context()
	core := b.client.CoreV1()
	if _, err := core.ConfigMaps(b.namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"a": "1", "b": "2"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := core.Secrets(b.namespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}, Data: map[string][]byte{"key": []byte("s3")}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := b.pod(`
		cat /var/run/secrets/kubernetes.io/serviceaccount/namespace; echo
		test -s /var/run/secrets/kubernetes.io/serviceaccount/token && test -s /var/run/secrets/kubernetes.io/serviceaccount/ca.crt && echo token
		cat /diwan-test/settings/a /diwan-test/settings/sub/b /diwan-test/one; echo
		cat /diwan-test/key/key; echo
		cat /diwan-test/labels; echo
		echo x >/diwan-test/scratch/in/file && cat /diwan-test/all/in/file
		echo x 2>/dev/null >/diwan-test/settings/a || echo read-only
		df /diwan-test/memory | grep -q tmpfs && echo memory
		echo $A $FROM_key $SELF`)
	pod.Labels = map[string]string{"color": "green"}
	c := &pod.Spec.Containers[0]
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"},
			Items: []corev1.KeyToPath{{Key: "a", Path: "a"}, {Key: "b", Path: "sub/b"}}}}},
		{Name: "keys", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "keys"}}},
		{Name: "labels", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}}}}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "memory", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
	}
	c.VolumeMounts = []corev1.VolumeMount{
		{Name: "settings", MountPath: "/diwan-test/settings"},
		{Name: "settings", MountPath: "/diwan-test/one", SubPath: "a"},
		{Name: "keys", MountPath: "/diwan-test/key"},
		{Name: "labels", MountPath: "/diwan-test/labels", SubPath: "labels"},
		{Name: "scratch", MountPath: "/diwan-test/scratch/in", SubPathExpr: "in"},
		{Name: "scratch", MountPath: "/diwan-test/all"},
		{Name: "memory", MountPath: "/diwan-test/memory"},
	}
	c.Env = []corev1.EnvVar{
		{Name: "A", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: "a"}}},
		{Name: "SELF", Value: "$(A)/$(FROM_key)/$$(A)/$(NONE)"},
	}
	c.EnvFrom = []corev1.EnvFromSource{{Prefix: "FROM_", SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}}}}
	pod = b.create(pod)
	b.awaitPhase(pod, corev1.PodSucceeded)
	want := b.namespace + "\ntoken\n121\ns3\ncolor=\"green\"\nx\nread-only\nmemory\n1 s3 1/s3/$(A)/$(NONE)\n"
	if !rootless.Root() {
		want = strings.Replace(want, "memory\n", "", 1) // is on the disk
	}
	if got := b.log(pod, "main", 0); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
	for _, left := range []string{"pods/" + string(pod.UID)} {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			if _, err := os.Stat(filepath.Join(b.cfg.Dir, left)); err != nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s is left", left)
			}
		}
	}
}

func TestMissingConfigMapIsWaitedFor(t *testing.T) {
	rootlesstest.NeedNamespaces(t)
	b := newBench(t, nil)
	pod := b.pod("cat /etc/settings/a")
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "late"}}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/tmp/diwan-late"}}
	pod.Spec.Containers[0].Command = []string{"cat", "/tmp/diwan-late/a"}
	pod = b.create(pod)
	b.await(pod, "waiting", func(p *corev1.Pod) bool {
		return p != nil && len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Waiting != nil
	})
	if _, err := b.client.CoreV1().ConfigMaps(b.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Data: map[string]string{"a": "here"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.awaitPhase(pod, corev1.PodSucceeded)
	events, err := b.client.CoreV1().Events(b.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
		return e.Reason == "FailedMount" && strings.Contains(e.Message, `configmap "late" not found`)
	}) {
		t.Errorf("no event says that the ConfigMap is missing: %v", events.Items)
	}
}

func TestInitContainersAndSidecars(t *testing.T) {
	b := newBench(t, nil)
	always := corev1.ContainerRestartPolicyAlways
	order := filepath.Join(t.TempDir(), "order")
	say := func(word string) []string { return []string{"sh", "-c", "echo " + word + " >>" + order} }
	pod := b.pod("echo main >>" + order)
	side := func(name string) corev1.Container {
		return corev1.Container{Name: name, Image: "any", RestartPolicy: &always, Command: []string{"sh", "-c",
			fmt.Sprintf("trap 'echo end-%s >>%s; exit 0' TERM; echo %s >>%s; while :; do sleep 0.01; done", name, order, name, order)},
			StartupProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"grep", name, order}}}, PeriodSeconds: 1, FailureThreshold: 30}}
	}
	pod.Spec.InitContainers = []corev1.Container{
		{Name: "one", Image: "any", Command: say("one")}, side("s1"), side("s2"), {Name: "two", Image: "any", Command: say("two")},
	}
	pod = b.create(pod)
	done := b.awaitPhase(pod, corev1.PodSucceeded)
	have, _ := os.ReadFile(order)
	if want := "one\ns1\ns2\ntwo\nmain\nend-s2\nend-s1\n"; string(have) != want {
		t.Errorf("got the order %q, want %q", have, want)
	}
	for _, s := range done.Status.InitContainerStatuses {
		if s.State.Terminated == nil {
			t.Errorf("init container %s has state %+v", s.Name, s.State)
		}
	}
}

func TestRestart(t *testing.T) {
	b := newBench(t, nil)
	pod := b.pod(`n=$(cat n 2>/dev/null || echo 0); echo $((n+1)) >n; echo run $n; exit 1`)
	pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	pod.Spec.Containers[0].WorkingDir = t.TempDir()
	pod = b.create(pod)
	got, _ := b.await(pod, "CrashLoopBackOff", func(p *corev1.Pod) bool {
		s := p.Status.ContainerStatuses
		return len(s) > 0 && s[0].State.Waiting != nil && s[0].State.Waiting.Reason == "CrashLoopBackOff"
	})
	s := got.Status.ContainerStatuses[0]
	if s.RestartCount != 1 || s.LastTerminationState.Terminated == nil || got.Status.Phase != corev1.PodRunning {
		t.Errorf("status %+v", got.Status)
	}
	if b.log(pod, "main", 0) != "run 0\n" || b.log(pod, "main", 1) != "run 1\n" {
		t.Error("the logs of the runs are mixed")
	}
}

func TestDeletion(t *testing.T) {
	b := newBench(t, nil)
	pod := b.pod(`trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.01; done`)
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", "echo hook >hook"}}}}
	pod.Spec.Containers[0].WorkingDir = t.TempDir()
	pod = b.create(pod)
	b.awaitLog(pod, "main", 0, "up")
	pod = b.awaitPhase(pod, corev1.PodRunning)
	if err := b.client.CoreV1().Pods(b.namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.await(pod, "deleted", func(p *corev1.Pod) bool { return p == nil })
	if got := b.log(pod, "main", 0); !strings.HasSuffix(got, "asked\n") {
		t.Errorf("log %q", got)
	}
	if _, err := os.Stat(filepath.Join(pod.Spec.Containers[0].WorkingDir, "hook")); err != nil {
		t.Errorf("the preStop hook did not run: %v", err)
	}
}

func TestForcedDeletionEndsProcesses(t *testing.T) {
	b := newBench(t, nil)
	alive := filepath.Join(t.TempDir(), "alive")
	pod := b.create(b.pod(`trap '' TERM; echo up; while :; do touch ` + alive + `; sleep 0.01; done`))
	b.awaitLog(pod, "main", 0, "up")
	grace := int64(0)
	if err := b.client.CoreV1().Pods(b.namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		os.Remove(alive)
		time.Sleep(50 * time.Millisecond)
		if _, err := os.Stat(alive); err != nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the process of a deleted Pod goes on")
		}
	}
}

func TestDeadline(t *testing.T) {
	b := newBench(t, nil)
	pod := b.pod("sleep 1000")
	deadline := int64(1)
	pod.Spec.ActiveDeadlineSeconds = &deadline
	got := b.awaitPhase(b.create(pod), corev1.PodFailed)
	if got.Status.Reason != "DeadlineExceeded" {
		t.Errorf("status %+v", got.Status)
	}
}

func TestEviction(t *testing.T) {
	rootlesstest.NeedNamespaces(t)
	b := newBench(t, nil)
	pod := b.pod("head -c 3000000 /dev/zero >/tmp/diwan-evict/x; sleep 1000")
	limit := resourceOf("1Mi")
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/tmp/diwan-evict"}}
	got := b.awaitPhase(b.create(pod), corev1.PodFailed)
	if got.Status.Reason != "Evicted" || !strings.Contains(got.Status.Message, `EmptyDir volume "v" exceeds the limit "1Mi"`) {
		t.Errorf("status %+v", got.Status)
	}
}

func TestProbes(t *testing.T) {
	b := newBench(t, nil)
	pod := b.pod(`touch alive; echo up; sleep 1000`)
	c := &pod.Spec.Containers[0]
	c.WorkingDir = t.TempDir()
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	exec := func(cmd string) corev1.ProbeHandler {
		return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", cmd}}}
	}
	c.ReadinessProbe = &corev1.Probe{ProbeHandler: exec("test -e ready"), PeriodSeconds: 1}
	c.LivenessProbe = &corev1.Probe{ProbeHandler: exec("test -e alive"), PeriodSeconds: 1, FailureThreshold: 1, InitialDelaySeconds: 1}
	grace := int64(0)
	pod.Spec.TerminationGracePeriodSeconds = &grace
	pod = b.create(pod)
	running := b.awaitPhase(pod, corev1.PodRunning)
	if running.Status.ContainerStatuses[0].Ready {
		t.Error("the container is ready before its probe passes")
	}
	os.WriteFile(filepath.Join(c.WorkingDir, "ready"), nil, 0o644)
	ready, _ := b.await(running, "ready", func(p *corev1.Pod) bool { return p.Status.ContainerStatuses[0].Ready })
	os.Remove(filepath.Join(c.WorkingDir, "alive"))
	b.await(ready, "restarted", func(p *corev1.Pod) bool { return p.Status.ContainerStatuses[0].RestartCount == 1 })
}

func TestMemoryLimit(t *testing.T) {
	if !rootless.Root() {
		t.Skip("only root has control groups for sure")
	}
	b := newBench(t, nil)
	pod := b.pod(`x=$(head -c 300000000 /dev/zero | tr '\0' x); echo ${#x}`)
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resourceOf("30Mi"), corev1.ResourceCPU: resourceOf("2")}
	got := b.awaitPhase(b.create(pod), corev1.PodFailed)
	if end := got.Status.ContainerStatuses[0].State.Terminated; end.Reason != "OOMKilled" || end.ExitCode != 137 {
		t.Errorf("the end is %+v; log %q", end, b.log(got, "main", 0))
	}
}

func TestHostileOutput(t *testing.T) {
	seen := &recorder{seen: map[string]*recording{}}
	b := newBench(t, func(c *node.Config) { c.Observers, c.KeepLog = seen, 4<<20 })
	pod := b.create(b.pod(`head -c 10000000 /dev/zero | tr '\0' x; echo; head -c 30000000 /dev/urandom; echo; echo last`))
	b.awaitPhase(pod, corev1.PodSucceeded)
	o := seen.of(pod, 0)
	if len(o.text) != 40000007 || !strings.HasSuffix(o.text, "\nlast\n") {
		t.Errorf("observed %d bytes", len(o.text))
	}
	info, err := os.Stat(filepath.Join(b.cfg.LogDir, b.namespace, pod.Name, "main", "0.log"))
	if err != nil {
		t.Fatal(err)
	}
	if blocks := info.Sys().(*syscall.Stat_t).Blocks * 512; info.Size() != 40000007 || blocks > 8<<20 {
		t.Errorf("the log has %d bytes and takes %d on disk", info.Size(), blocks)
	}
}

func TestUnmappedImage(t *testing.T) {
	b := newBench(t, nil)
	pod := b.pod("")
	pod.Spec.Containers[0].Command = nil
	pod = b.create(pod)
	got, _ := b.await(pod, "waiting", func(p *corev1.Pod) bool {
		s := p.Status.ContainerStatuses
		return len(s) > 0 && s[0].State.Waiting != nil && s[0].State.Waiting.Reason == "ErrImagePull"
	})
	if m := got.Status.ContainerStatuses[0].State.Waiting.Message; !strings.Contains(m, "diwan images map") {
		t.Errorf("the message does not say what to do: %q", m)
	}
}
