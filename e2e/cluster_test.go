// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
	"diwan.dev/diwan/internal/testing/clustertest"
)

var (
	claims  = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	volumes = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
)

// TestCluster looks at what the local cluster offers beside experiments. The
// parts share one, since they do not disturb each other.
func TestCluster(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.parts(t, func(part part) {
		part("claims", testClaims)
		part("quota", testQuota)
		part("credentials", testCredentials)
		part("services", testServices)
		part("deployment", testDeployment)
		part("elastic", testElastic)
		part("use", testUse)
		part("trials' use", testTrialsUse)
		part("unserved", testUnserved)
		part("interactive", testInteractive)
		part("attach", testAttach)
		part("debug", testDebug)
	})
}

// apply gives text to kubectl.
func (s *server) apply(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, code := s.diwan("kubectl", "apply", "-f", file); code != 0 {
		t.Fatalf("kubectl apply: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// phase waits until an object of the namespace default is in a phase.
func (s *server) phase(t *testing.T, resource schema.GroupVersionResource, name, want string) *unstructured.Unstructured {
	t.Helper()
	var object *unstructured.Unstructured
	eventually(t, time.Minute, func() error {
		var err error
		if object, err = s.client().Resource(resource).Namespace("default").Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		if phase, _, _ := unstructured.NestedString(object.Object, "status", "phase"); phase != want {
			return fmt.Errorf("%s %s is %q, want %q: %v", object.GetKind(), name, phase, want, object.Object["status"])
		}
		return nil
	})
	return object
}

// testClaims writes to a claim in one Pod and reads in another, and wants the
// data gone with the claim.
func testClaims(t *testing.T, s *server) {
	s.apply(t, `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`)
	s.phase(t, claims, "data", "Bound")
	pod := `
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  restartPolicy: Never
  containers: [{name: main, image: busybox, command: [sh, -c, %q], volumeMounts: [{name: data, mountPath: %s}]}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`
	mount := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(mount, 0o755); err != nil {
		t.Fatal(err)
	}
	s.apply(t, fmt.Sprintf(pod, "writer", "echo kept >"+mount+"/file", mount))
	s.phase(t, pods, "writer", "Succeeded")
	s.apply(t, fmt.Sprintf(pod, "reader", "grep kept "+mount+"/file", mount))
	s.phase(t, pods, "reader", "Succeeded")
	if stdout, stderr, code := s.diwan("kubectl", "delete", "pod/writer", "pod/reader", "pvc/data"); code != 0 {
		t.Fatalf("kubectl delete: exit code %d\n%s%s", code, stdout, stderr)
	}
	eventually(t, time.Minute, func() error {
		list, err := s.client().Resource(volumes).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		dirs, _ := filepath.Glob(filepath.Join(s.home, "volumes", "*"))
		if len(list.Items)+len(dirs) > 0 {
			return fmt.Errorf("%d volumes and the directories %v are left", len(list.Items), dirs)
		}
		return nil
	})
}

// testQuota wants quotas to hold Pods back.
func testQuota(t *testing.T, s *server) {
	kube, err := kubernetes.NewForConfig(s.config())
	if err != nil {
		t.Fatal(err)
	}
	poor := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "poor"}}
	if _, err := kube.CoreV1().Namespaces().Create(t.Context(), poor, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	clustertest.Quota(t, kube, poor.Name, corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")})
	create := func(name string) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "busybox", Command: []string{"sleep", "1000"}}}
		_, err := kube.CoreV1().Pods(poor.Name).Create(t.Context(), pod, metav1.CreateOptions{})
		return err
	}
	eventually(t, time.Minute, func() error { return create("first") }) // once the namespace has its service account
	if err := create("second"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota") {
		t.Errorf("a second Pod got %v, want that the quota is exceeded", err)
	}
}

// testCredentials wants the cluster to be the owner's alone.
func testCredentials(t *testing.T, s *server) {
	for _, file := range []string{"kubeconfig", "pki/admin.pem", "pki/tokens.csv", "observations.db", "diwan.log"} {
		info, err := os.Stat(filepath.Join(s.home, file))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 && file != "observations.db" {
			t.Errorf("%s has the mode %v: others can read it", file, info.Mode())
		}
	}
	config := s.config()
	if !strings.HasPrefix(config.Host, "https://127.0.0.1:") {
		t.Errorf("the API server is at %s, want loopback", config.Host)
	}
	anonymous := rest.AnonymousClientConfig(config)
	client, err := rest.HTTPClientFor(anonymous)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/v1/namespaces/default/secrets", "/readyz", "/metrics"} {
		response, err := client.Get(config.Host + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized {
			t.Errorf("a stranger gets %d for %s, want 401", response.StatusCode, path)
		}
	}
}

// testServices wants a Pod to reach another by the name of its Service, and
// the API server with the token of its service account.
func testServices(t *testing.T, s *server) {
	rootlesstest.NeedNamespaces(t) // cluster IPs need them
	s.apply(t, `
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {containers: [{name: main, image: python, command: [python3, -m, http.server, "8000"], ports: [{containerPort: 8000}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8000}]}
---
apiVersion: v1
kind: Pod
metadata: {name: visitor}
spec:
  restartPolicy: OnFailure
  containers:
  - name: main
    image: python
    command: [python3, -c]
    args:
    - |
      import ssl, urllib.request
      print(urllib.request.urlopen("http://web.default.svc", timeout=5).status)
      here = "/var/run/secrets/kubernetes.io/serviceaccount/"
      request = urllib.request.Request("https://kubernetes.default.svc/version", headers={"Authorization": "Bearer " + open(here + "token").read()})
      print(urllib.request.urlopen(request, timeout=5, context=ssl.create_default_context(cafile=here + "ca.crt")).status)
`)
	s.phase(t, pods, "visitor", "Succeeded")
	if stdout, stderr, code := s.diwan("kubectl", "delete", "pod/web", "--grace-period=1"); code != 0 {
		t.Errorf("kubectl delete: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// testDeployment wants workloads beside Jobs to work.
func testDeployment(t *testing.T, s *server) {
	s.apply(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: two}
spec:
  replicas: 2
  selector: {matchLabels: {app: two}}
  template:
    metadata: {labels: {app: two}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: main, image: busybox, command: [sleep, "1000"]}]}
`)
	if stdout, stderr, code := s.diwan("kubectl", "rollout", "status", "deployment/two", "--timeout=60s"); code != 0 {
		t.Errorf("kubectl rollout status: exit code %d\n%s%s", code, stdout, stderr)
	}
	if stdout, stderr, code := s.diwan("kubectl", "delete", "deployment/two", "--cascade=foreground"); code != 0 {
		t.Errorf("kubectl delete: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// testUse wants to see what Pods use, and a HorizontalPodAutoscaler to act on it.
func testUse(t *testing.T, s *server) {
	s.apply(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: used}
spec:
  selector: {matchLabels: {app: used}}
  template:
    metadata: {labels: {app: used}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: busybox, command: [sh, -c, "while :; do sleep 0.01; done"], resources: {requests: {cpu: 1m}}}]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: used}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: used}
  maxReplicas: 2
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
`)
	for _, want := range []struct{ what, label, text string }{{"pods", "-l=app=used", "used-"}, {"nodes", "--no-headers", "laptop"}} {
		eventually(t, time.Minute, func() error {
			stdout, stderr, code := s.diwan("kubectl", "top", want.what, want.label)
			if code != 0 || !strings.Contains(stdout, want.text) || !strings.Contains(stdout, "Mi") {
				return fmt.Errorf("kubectl top %s: exit code %d\n%s%s", want.what, code, stdout, stderr)
			}
			return nil
		})
	}
	if stdout, stderr, code := s.diwan("kubectl", "wait", "deployment/used", "--for=jsonpath={.status.replicas}=2", "--timeout=2m"); code != 0 {
		t.Errorf("the Deployment is not scaled: %s%s", stdout, stderr)
	}
	if stdout, stderr, code := s.diwan("kubectl", "delete", "hpa/used", "deployment/used", "--cascade=foreground"); code != 0 {
		t.Errorf("kubectl delete: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// testUnserved wants to be warned of what nothing here acts on.
func testUnserved(t *testing.T, s *server) {
	for kind, args := range map[string][]string{
		"Service": {"service", "loadbalancer", "balanced", "--tcp=80"},
		"Ingress": {"ingress", "entrance", "--default-backend=balanced:80"},
	} {
		_, stderr, code := s.diwan(append([]string{"kubectl", "create"}, args...)...)
		if code != 0 || strings.Count(stderr, "Warning: "+kind) != 1 {
			t.Errorf("kubectl create %s: exit code %d, %q; want a warning", args, code, stderr)
		}
	}
	if _, stderr, code := s.diwan("kubectl", "delete", "service/balanced", "ingress/entrance"); code != 0 || strings.Contains(stderr, "Warning") {
		t.Errorf("kubectl delete: exit code %d, %q", code, stderr)
	}
}

// testTrialsUse wants a trial to tell what it used.
func testTrialsUse(t *testing.T, s *server) {
	used := shape{name: "used", trials: 1, parallel: 1, command: "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo loss=${trialParameters.x}"}
	if err := used.create(s); err != nil {
		t.Fatal(err)
	}
	s.ended("default", "used", time.Minute)
	for _, trial := range s.trialsOf("used") {
		text, _, _ := unstructured.NestedString(trial.Object, "status", "resourceUsage", "cpuTime")
		if spent, err := time.ParseDuration(text); err != nil || spent <= 0 {
			t.Errorf("the trial tells a processor time of %q: %v", text, trial.Object["status"])
		}
	}
}
