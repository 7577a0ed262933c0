// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"diwan.dev/diwan/internal/localcluster/clustertest"
	"diwan.dev/diwan/internal/node"
	"diwan.dev/diwan/internal/node/image"
	"diwan.dev/diwan/internal/node/network"
)

var cluster clustertest.Shared

func TestMain(m *testing.M) {
	if args := os.Getenv(ownerEnv); args != "" {
		if err := own(strings.Fields(args)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(cluster.Run(m))
}

// images maps nothing: commands run on the host.
type images struct{}

func (images) Resolve(name string, hasCommand bool) (*image.Environment, error) {
	if !hasCommand {
		return nil, &image.UnmappedError{Image: name}
	}
	return &image.Environment{Image: name, ID: "host"}, nil
}

// bench is a node of a test on the shared cluster.
type bench struct {
	t         *testing.T
	client    kubernetes.Interface
	namespace string
	cfg       node.Config
	stop      func()
}

func newBench(t *testing.T, change func(*node.Config)) *bench {
	t.Helper()
	t.Parallel()
	c, namespace := cluster.Namespace(t)
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("", "diwan-node-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	b := &bench{t: t, client: client, namespace: namespace, cfg: node.DefaultConfig(home)}
	b.cfg.NodeName = "node-" + namespace
	b.cfg.Client = client
	b.cfg.Images = images{}
	b.cfg.StopGrace = time.Second
	b.cfg.DiskCheck = 50 * time.Millisecond
	if change != nil {
		change(&b.cfg)
	}
	b.start()
	t.Cleanup(func() {
		b.deleteAll()
		b.stop()
		client.CoreV1().Nodes().Delete(context.Background(), b.cfg.NodeName, metav1.DeleteOptions{})
	})
	return b
}

// start starts the node, for the first time or again.
func (b *bench) start() {
	b.t.Helper()
	plan, err := network.PlanFor(filepath.Dir(b.cfg.Dir))
	if err != nil {
		b.t.Fatal(err)
	}
	connect := network.Default(plan)
	connect.Mode = network.Loopback
	net, err := network.New(connect)
	if err != nil {
		b.t.Fatal(err)
	}
	cfg := b.cfg
	cfg.Network = net
	n, err := node.New(cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			b.t.Errorf("the node ended with %v", err)
		}
		net.Close()
	})
}

// deleteAll deletes the Pods and waits until they are gone.
func (b *bench) deleteAll() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	grace := int64(0)
	pods := b.client.CoreV1().Pods(b.namespace)
	pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &grace}, metav1.ListOptions{})
	b.awaitNoState()
}

// awaitNoState waits until the node has let go of all Pods.
func (b *bench) awaitNoState() {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if left, _ := filepath.Glob(filepath.Join(b.cfg.Dir, "pods", "*-*")); len(left) == 0 {
			return
		}
	}
	b.t.Error("the state of Pods that ended is left")
}

// awaitFile waits until a file is there.
func (b *bench) awaitFile(path string) {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
	b.t.Fatalf("%s is not made", filepath.Base(path))
}

// pod is a Pod that runs script in one container.
func (b *bench) pod(script string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-", Namespace: b.namespace},
		Spec: corev1.PodSpec{
			NodeName: b.cfg.NodeName, RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "main", Image: "any", Command: []string{"sh", "-c", script}}},
		},
	}
}

func (b *bench) create(pod *corev1.Pod) *corev1.Pod {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		got, err := b.client.CoreV1().Pods(b.namespace).Create(b.t.Context(), pod, metav1.CreateOptions{})
		if err == nil {
			return got
		}
		if !apierrors.IsForbidden(err) || time.Now().After(deadline) { // the service account is being made
			b.t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// await watches the Pod until ok, and returns it with the number of its versions.
func (b *bench) await(pod *corev1.Pod, what string, ok func(*corev1.Pod) bool) (*corev1.Pod, int) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	pods := b.client.CoreV1().Pods(b.namespace)
	watch, err := pods.Watch(ctx, metav1.ListOptions{
		ResourceVersion: pod.ResourceVersion, FieldSelector: fields.OneTermEqualSelector("metadata.name", pod.Name).String(),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	defer watch.Stop()
	last, versions := pod, 0
	for event := range watch.ResultChan() {
		p, isPod := event.Object.(*corev1.Pod)
		if !isPod {
			continue
		}
		versions++
		last = p
		if event.Type == "DELETED" {
			last = nil
		}
		if ok(last) {
			return last, versions
		}
		if last == nil {
			break
		}
	}
	b.t.Fatalf("the Pod does not become %s; its status: %+v", what, last.Status)
	return nil, 0
}

func (b *bench) awaitPhase(pod *corev1.Pod, phase corev1.PodPhase) *corev1.Pod {
	b.t.Helper()
	got, _ := b.await(pod, string(phase), func(p *corev1.Pod) bool { return p != nil && p.Status.Phase == phase })
	return got
}

func (b *bench) log(pod *corev1.Pod, name string, attempt int) string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.cfg.LogDir, b.namespace, pod.Name, name, fmt.Sprint(attempt)+".log"))
	if err != nil {
		b.t.Error(err)
	}
	return string(text)
}

// awaitLog waits until a log has text.
func (b *bench) awaitLog(pod *corev1.Pod, name string, attempt int, text string) {
	b.t.Helper()
	path := filepath.Join(b.cfg.LogDir, b.namespace, pod.Name, name, fmt.Sprint(attempt)+".log")
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if have, _ := os.ReadFile(path); strings.Contains(string(have), text) {
			return
		}
	}
	have, _ := os.ReadFile(path)
	b.t.Fatalf("the log of %s does not have %q; it has %q", name, text, have)
}

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
			if os.Geteuid() != 0 && (name == "user" || name == "last words" || strings.HasPrefix(name, "host name")) {
				t.Skip("needs root")
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
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	pod = b.create(pod)
	b.awaitPhase(pod, corev1.PodSucceeded)
	want := b.namespace + "\ntoken\n121\ns3\ncolor=\"green\"\nx\nread-only\nmemory\n1 s3 1/s3/$(A)/$(NONE)\n"
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
	b := newBench(t, nil)
	pod := b.pod("cat /etc/settings/a")
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
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
	b := newBench(t, nil)
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
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

// recorder observes everything and keeps it in memory, as a store would.
type recorder struct {
	mu   sync.Mutex
	seen map[string]*recording
}

type recording struct {
	mu                  sync.Mutex
	run                 node.Subject
	text                string
	finished, discarded bool
}

func (r *recorder) Observe(_ context.Context, s node.Subject) (node.Observer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := fmt.Sprintf("%s/%d", s.Pod.Name, s.Attempt)
	if r.seen[key] == nil {
		r.seen[key] = &recording{}
	}
	seen := r.seen[key]
	seen.mu.Lock()
	defer seen.mu.Unlock()
	seen.run = s
	return seen, nil
}

func (r *recorder) of(pod *corev1.Pod, attempt int) *recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[fmt.Sprintf("%s/%d", pod.Name, attempt)]
}

func (r *recording) Look(context.Context, time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	file, err := os.Open(r.run.Output)
	if err != nil {
		return err
	}
	defer file.Close()
	if start := r.run.OutputStart(); start > int64(len(r.text)) {
		return fmt.Errorf("bytes from %d to %d are gone", len(r.text), start)
	}
	more, err := io.ReadAll(io.NewSectionReader(file, int64(len(r.text)), math.MaxInt64-int64(len(r.text))))
	r.text += string(more)
	return err
}

func (r *recording) Finish(ctx context.Context, now time.Time) error {
	if err := r.Look(ctx, now); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finished = true
	return nil
}

func (r *recording) Discard(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.discarded, r.text = true, ""
	return nil
}

func (r *recording) Needs() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int64(len(r.text))
}

func (r *recording) Close() {}

func TestStopInterruptsAndRunsAgain(t *testing.T) {
	t.Run("who ends when asked", func(t *testing.T) { testInterrupt(t, "") })
	t.Run("who must be killed", func(t *testing.T) { testInterrupt(t, "trap '' TERM;") })
}

func testInterrupt(t *testing.T, trap string) {
	seen := &recorder{seen: map[string]*recording{}}
	b := newBench(t, func(c *node.Config) { c.Observers = seen })
	gate := filepath.Join(t.TempDir(), "gate")
	pod := b.create(b.pod(trap + `echo begun; while [ ! -e ` + gate + ` ]; do sleep 0.01; done; echo done`))
	b.awaitLog(pod, "main", 0, "begun")
	b.stop()
	os.WriteFile(gate, nil, 0o644)
	b.start()
	done := b.awaitPhase(pod, corev1.PodSucceeded)
	if n := done.Status.ContainerStatuses[0].RestartCount; n != 0 {
		t.Errorf("the interruption counts as %d restarts", n)
	}
	first, second := seen.of(pod, 0), seen.of(pod, 1)
	if first == nil || !first.discarded || second == nil || second.text != "begun\ndone\n" || !second.finished {
		t.Errorf("observed %+v and %+v", first, second)
	}
}

func TestLeftRunningIsAdopted(t *testing.T) {
	seen := &recorder{seen: map[string]*recording{}}
	b := newBench(t, func(c *node.Config) { c.Observers, c.LeaveRunning = seen, true })
	gate := filepath.Join(t.TempDir(), "gate")
	long := b.create(b.pod(`echo begun; while [ ! -e ` + gate + ` ]; do sleep 0.01; done; echo done; exit 4`))
	quick := b.create(b.pod(`echo begun; while [ ! -e ` + gate + `.2 ]; do sleep 0.01; done; echo done; exit 5`))
	b.awaitLog(long, "main", 0, "begun")
	b.awaitLog(quick, "main", 0, "begun")
	b.stop()
	os.WriteFile(gate+".2", nil, 0o644)
	b.awaitLog(quick, "main", 0, "done") // while no node is there
	b.start()
	for pod, code := range map[*corev1.Pod]int32{quick: 5, long: 4} {
		if pod == long {
			os.WriteFile(gate, nil, 0o644)
		}
		done := b.awaitPhase(pod, corev1.PodFailed)
		if end := done.Status.ContainerStatuses[0].State.Terminated; end.ExitCode != code {
			t.Errorf("the end is %+v, want code %d", end, code)
		}
		if o := seen.of(pod, 0); o.text != "begun\ndone\n" || !o.finished || o.discarded || seen.of(pod, 1) != nil {
			t.Errorf("observed %+v", o)
		}
	}
}

// TestSubject checks what an observer is told of a run.
func TestSubject(t *testing.T) {
	seen := &recorder{seen: map[string]*recording{}}
	b := newBench(t, func(c *node.Config) { c.Observers = seen })
	if os.Geteuid() != 0 {
		t.Skip("volumes appear in containers for root alone")
	}
	gate := filepath.Join(t.TempDir(), "gate")
	pod := b.pod(`echo 1 > /m/sub/file; echo begun; while [ ! -e ` + gate + ` ]; do sleep 0.01; done`)
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/m/sub"}}
	pod = b.create(pod)
	b.awaitLog(pod, "main", 0, "begun")
	o := seen.of(pod, 0)
	o.mu.Lock()
	s := o.run
	o.mu.Unlock()
	if path, own := s.HostPath("/m/sub/../sub/file"); !own {
		t.Errorf("%s is not the Pod's own", path)
	} else if text, err := os.ReadFile(path); string(text) != "1\n" {
		t.Errorf("%s has %q, %v", path, text, err)
	}
	if path, own := s.HostPath(gate); own || path != gate {
		t.Errorf("a path without a mount is %s, own %v", path, own)
	}
	if s.Pod.UID != pod.UID || s.Container != "main" || s.Attempt != 0 || s.OutputStart() != 0 {
		t.Errorf("the subject is %+v", s)
	}
	if ip, err := netip.ParseAddr(s.Address); err != nil || !ip.IsLoopback() {
		t.Errorf("the address is %q, want one of loopback, as the network of this test has", s.Address)
	}
	s.Warn("no metrics")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		events, err := b.client.CoreV1().Events(b.namespace).List(t.Context(), metav1.ListOptions{})
		if err == nil && slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.InvolvedObject.UID == pod.UID && e.Reason == "MetricsCollection" && e.Message == "no metrics"
		}) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no event tells what is wrong (%v)", err)
		}
	}
	os.WriteFile(gate, nil, 0o644)
	b.awaitPhase(pod, corev1.PodSucceeded)
}

func TestMemoryLimit(t *testing.T) {
	b := newBench(t, nil)
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
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
