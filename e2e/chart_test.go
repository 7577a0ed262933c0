// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"diwan.dev/diwan/internal/platform/node/image"
	"diwan.dev/diwan/internal/testing/processcluster"
	"diwan.dev/diwan/observation/observationtest/database"
)

// buildImage makes the other programs of Diwan's image, beside the binary, once.
var buildImage = sync.OnceValue(func() error {
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", filepath.Dir(binary), root+"/cmd/diwan-collector", root+"/cmd/diwan-entry")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the programs of the image: %w\n%s", err, out)
	}
	return nil
})

// imageOfDiwan is what the node takes for the image of the chart.
const imageOfDiwan = "registry.test/diwan"

// foreign is a cluster that is not Diwan's, in which the chart is installed.
type foreign struct {
	t       testing.TB
	cluster *processcluster.Cluster
	kube    kubernetes.Interface
	any     dynamic.Interface
	// home is the namespace in which Diwan is installed, and url the database.
	home, url string
	link      *link // to the database
}

// newForeign starts a cluster whose node knows the image of the chart, and the
// image "report" as a trial that reports by gRPC.
func newForeign(t *testing.T) *foreign {
	t.Helper()
	if err := buildImage(); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := &foreign{t: t, home: "kubeflow"}
	f.cluster = processcluster.New(t, processcluster.Config{
		Images: []image.Entry{
			{Image: imageOfDiwan, Command: []string{binary}, Path: []string{filepath.Dir(binary)}},
			{Image: "ghcr.io/kubeflow/training-v1/kubectl-delivery", Command: []string{binary, "deliver-kubectl"}},
			{Image: "report", Command: []string{self}, Env: map[string]string{reporting: "1"}},
		},
		// A machine counts as dead after some seconds of silence.
		Controllers: []string{"--node-monitor-grace-period=12s", "--node-monitor-period=1s"},
	})
	f.kube, f.any = f.clients(f.cluster.Admin())
	t.Cleanup(func() {
		if t.Failed() {
			f.showOperators()
		}
	})
	return f
}

func (f *foreign) clients(config *rest.Config) (kubernetes.Interface, dynamic.Interface) {
	f.t.Helper()
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		f.t.Fatal(err)
	}
	anything, err := dynamic.NewForConfig(config)
	if err != nil {
		f.t.Fatal(err)
	}
	return kube, anything
}

// install runs the commands by which the page installs the chart, with metrics
// in PostgreSQL, and every training job a gang. They return when both operators
// are ready. The namespace admits nothing but restricted Pods.
func (f *foreign) install() {
	f.t.Helper()
	f.url = f.database()
	f.follow(f.t, "install", "--wait", "--wait --timeout 3m --set leaderElection.leaseDuration=3s --set resources.requests.cpu=10m --set gangSchedulerName=kubernetes --set collector.registries={"+f.cluster.Gateway()+"}")
	f.reachable(f.t)
}

// follow runs the commands below a mark in the page about clusters, with this
// cluster's names, and with other replacements, in pairs.
func (f *foreign) follow(t testing.TB, mark string, replace ...string) {
	t.Helper()
	replace = append([]string{"postgres://USER:PASSWORD@HOST:5432/DATABASE", f.url, "registry.example/diwan", imageOfDiwan}, replace...)
	commands := block(t, filepath.Join(root, "docs", "running-on-a-cluster.md"), "<!-- test: "+mark+" -->")
	f.shell(t, strings.NewReplacer(replace...).Replace(commands))
}

// block is the block of commands below a mark in a page.
func block(t testing.TB, page, mark string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, below, ok := strings.Cut(string(text), mark+"\n```sh\n")
	commands, _, end := strings.Cut(below, "```")
	if !ok || !end {
		t.Fatalf("%s has no commands below %s", page, mark)
	}
	return commands
}

// shell runs commands as the administrator of the cluster, and wants all of
// them to succeed.
func (f *foreign) shell(t testing.TB, commands string) {
	t.Helper()
	dir := t.TempDir()
	for name, program := range map[string]string{"helm": "go tool -modfile=tools/go.mod helm", "kubectl": binary + ` --kubeconfig "$KUBECONFIG" kubectl`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nexec "+program+` "$@"`+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euxc", commands)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.cluster.Kubeconfig(), "HELM_CACHE_HOME="+dir, "HELM_CONFIG_HOME="+dir, "PATH="+dir+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		f.showOperators()
		t.Fatalf("the commands fail: %v\n%s", err, out)
	}
}

// database lends a database that Pods of the cluster reach.
func (f *foreign) database() string {
	f.t.Helper()
	location, err := url.Parse(database.Postgres().Lend(f.t).URL())
	if err != nil {
		f.t.Fatal(err)
	}
	f.link = newLink(f.t, net.JoinHostPort(f.cluster.Gateway(), "0"), location.Host)
	location.Host = f.link.address
	return location.String()
}

// operators are the Pods of the operators.
func (f *foreign) operators() []corev1.Pod {
	f.t.Helper()
	list, err := f.kube.CoreV1().Pods(f.home).List(context.WithoutCancel(f.t.Context()), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=operator"})
	if err != nil {
		f.t.Errorf("cannot list the operators: %v", err)
		return nil
	}
	return list.Items
}

// showOperators shows what the operators said last.
func (f *foreign) showOperators() {
	for _, pod := range f.operators() {
		f.t.Logf("operator %s: %v", pod.Name, pod.Status.ContainerStatuses)
	}
	logs, _ := filepath.Glob(filepath.Join(f.cluster.ContainerLogs(), f.home, "*", "*", "*.log"))
	for _, path := range logs {
		text, _ := os.ReadFile(path)
		f.t.Logf("%s ends with:\n%s", path, text[max(0, len(text)-4000):])
	}
}

// logs is what all operators ever said.
func (f *foreign) logs() string {
	var all strings.Builder
	paths, _ := filepath.Glob(filepath.Join(f.cluster.ContainerLogs(), "*", "diwan-operator-*", "*", "*.log"))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.t.Error(err)
		}
		all.Write(text)
	}
	return all.String()
}

// reporter is an experiment whose trials report by gRPC.
func reporter(name string, trials, parallel int, diary string) string {
	return fmt.Sprintf(`
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: %s}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm:
    algorithmName: random
    algorithmSettings: [{name: random_state, value: "1"}]
  maxTrialCount: %d
  parallelTrialCount: %d
  maxFailedTrialCount: 0
  metricsCollectorSpec: {collector: {kind: Push}}
  parameters:
  - {name: x, parameterType: double, feasibleSpace: {min: "0", max: "1"}}
  trialTemplate:
    primaryContainerName: main
    retain: true
    trialParameters: [{name: x, reference: x}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        backoffLimit: 0
        template:
          spec:
            restartPolicy: Never
            containers: [{name: main, image: report, args: [%s, "loss=${trialParameters.x}"]}]
`, name, trials, parallel, diary)
}

// create creates an experiment from a manifest.
func create(ctx context.Context, client dynamic.Interface, namespace, manifest string) error {
	object, err := decode(manifest)
	if err != nil {
		return err
	}
	_, err = client.Resource(experiments).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{})
	return err
}

// succeeded waits until an experiment has succeeded, and returns its trials.
func (f *foreign) succeeded(t testing.TB, namespace, name string, within time.Duration) []unstructured.Unstructured {
	t.Helper()
	eventually(t, within, func() error {
		if err := f.cluster.Ended(); err != nil {
			t.Fatal(err)
		}
		object, err := f.any.Resource(experiments).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if _, _, ok := condition(object, "Succeeded"); !ok {
			return fmt.Errorf("experiment %s has not succeeded: %v", name, object.Object["status"])
		}
		return nil
	})
	list, err := f.any.Resource(trials).Namespace(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "katib.kubeflow.org/experiment=" + name})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// namespace makes a namespace.
func (f *foreign) namespace(name string) {
	f.t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := f.kube.CoreV1().Namespaces().Create(f.t.Context(), object, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// TestChart installs the chart in a cluster that is not Diwan's, and uses it as
// its users, its administrators and bad luck do.
func TestChart(t *testing.T) {
	t.Parallel()
	f := newForeign(t)
	f.install()
	t.Run("refuses", f.testRefusals)
	sideBySide(
		func() { t.Run("collector", f.testCollector) },
		func() { t.Run("images", f.testImages) },
		func() { t.Run("tenancy", f.testTenancy) },
		func() { t.Run("quota", f.testQuota) },
		func() { t.Run("MPI", f.testMPI) },
	)
	d := f.newDeath(t)
	t.Run("machine dies", d.testDies)
	sideBySide( // while it takes its time to be given up
		func() { t.Run("SDKs", f.testSDKs) },
		func() { t.Run("examples", f.testExamples) },
	)
	t.Run("machine is dead", d.testDead)
	t.Run("machine is back", d.testBack)
	t.Run("metrics", f.testMetrics)
	t.Run("certificate", f.testCertificate)
	t.Run("permissions", f.testPermissions) // before an API server begins again, which knows no roles for a moment
	t.Run("kills", f.testKills)
	t.Run("upgrade", f.testUpgrade)
	t.Run("uninstall", f.testUninstall)
	t.Run("manifests", f.testManifests)
	t.Run("elsewhere", f.testElsewhere)
}

// sideBySide runs parts of a test that do not disturb each other. They share the turn
// of their test: parallel ones would wait until all other tests have had theirs.
func sideBySide(parts ...func()) {
	var all sync.WaitGroup
	for _, part := range parts {
		all.Go(part)
	}
	all.Wait()
}

// testPermissions wants the operators to have missed no permission so far.
func (f *foreign) testPermissions(t *testing.T) {
	for line := range strings.Lines(f.logs()) {
		if strings.Contains(line, "forbidden") {
			t.Errorf("the operator's role lacks something: %s", line)
		}
	}
}

// reachable waits until the API server reaches the webhooks through their Service,
// whose addresses follow the readiness of the Pods with some delay.
func (f *foreign) reachable(t testing.TB) {
	t.Helper()
	eventually(t, time.Minute, func() error {
		err := create(t.Context(), f.any, "default", strings.Replace(reporter("wrong", 1, 1, "/dev/null"), "algorithmName: random", "algorithmName: no-such", 1))
		if apierrors.IsInternalError(err) {
			return err
		}
		return nil
	})
}

// testRefusals wants the API server to ask the webhooks.
func (f *foreign) testRefusals(t *testing.T) {
	text := strings.Replace(reporter("wrong", 1, 1, "/dev/null"), "algorithmName: random", "algorithmName: no-such", 1)
	if err := create(t.Context(), f.any, "default", text); !apierrors.IsInvalid(err) {
		t.Errorf("an experiment with an unknown algorithm gets %v, want that it is invalid", err)
	}
}

// testCertificate damages the certificate of the webhooks: the operators make
// another, and no experiment is rejected meanwhile.
func (f *foreign) testCertificate(t *testing.T) {
	secrets := f.kube.CoreV1().Secrets("kubeflow")
	before, err := secrets.Get(t.Context(), "diwan-webhooks", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	damage := []byte(`{"data":{"tls.crt":null,"tls.key":null}}`)
	if _, err := secrets.Patch(t.Context(), "diwan-webhooks", types.MergePatchType, damage, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	dry, err := decode(reporter("dry", 1, 1, "/dev/null"))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func() error {
		if _, err := f.any.Resource(experiments).Namespace("default").Create(t.Context(), dry, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Fatalf("an experiment is refused: %v", err)
		}
		now, err := secrets.Get(t.Context(), "diwan-webhooks", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !bytes.Equal(now.Data["ca.crt"], before.Data["ca.crt"]) {
			t.Fatal("there is another authority")
		}
		if len(now.Data["tls.crt"]) == 0 {
			return errors.New("there is no new certificate")
		}
		return nil
	})
}

// testUninstall wants what users made to be there when the chart is gone, and
// nothing to be in its way.
func (f *foreign) testUninstall(t *testing.T) {
	f.follow(t, "uninstall")
	list, err := f.any.Resource(experiments).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 {
		t.Errorf("%d experiments are left (%v), want those that users made", len(list.Items), err)
	}
	if err := create(t.Context(), f.any, "default", reporter("later", 1, 1, "/dev/null")); err != nil {
		t.Errorf("an experiment cannot be created after the chart is gone: %v", err)
	}
	roles, err := f.kube.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=diwan"})
	secrets, errSecrets := f.kube.CoreV1().Secrets("kubeflow").List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=diwan"})
	if err := errors.Join(err, errSecrets); err != nil || len(roles.Items)+len(secrets.Items) > 0 {
		t.Errorf("%d roles and %d secrets are left (%v)", len(roles.Items), len(secrets.Items), err)
	}
}
