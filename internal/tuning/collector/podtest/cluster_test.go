// SPDX-License-Identifier: Apache-2.0

package podtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/diwan"
	wings "diwan.dev/diwan/internal/diwan/laptop"
	"diwan.dev/diwan/internal/platform/laptop"
	"diwan.dev/diwan/internal/platform/node/rootless"
	"diwan.dev/diwan/internal/platform/node/rootless/rootlesstest"
	"diwan.dev/diwan/internal/testing/clustertest"
	"diwan.dev/diwan/internal/tuning/algorithm"
	"diwan.dev/diwan/internal/tuning/collector/injection"
	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/sqlite"
)

// cluster is one that `diwan up` does not start: its node collects nothing, and the
// Pods of trials have collectors of their own.
var cluster *laptop.Cluster

const image = "example.com/collector"

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run runs the tests with a cluster in this process.
func run(m *testing.M) (code int) {
	_ = rootless.Enter(nil) // what needs it says so: rootlesstest.NeedNamespaces
	dir, err := os.MkdirTemp("", "diwan-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if code != 0 {
			fmt.Fprintln(os.Stderr, "the cluster's home is kept for inspection:", dir)
		} else if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	if cluster, err = start(laptop.Home(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer cluster.Stop()
	return m.Run()
}

func start(home laptop.Home) (*laptop.Cluster, error) {
	programs := home.Path("programs")
	for _, program := range []string{"diwan-collector", "diwan-entry"} {
		if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", programs+"/", "diwan.dev/diwan/cmd/"+program).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("cannot build %s: %w\n%s", program, err, out)
		}
	}
	// The collector is no root, and is to find its program.
	for _, dir := range []string{string(home), programs} {
		if err := os.Chmod(dir, 0o755); err != nil {
			return nil, err
		}
	}
	table := fmt.Sprintf("images:\n- {image: '*', runtime: process}\n- {image: %s, path: [%s]}\n", image, programs)
	if err := os.WriteFile(home.Path("images.yaml"), []byte(table), 0o600); err != nil {
		return nil, err
	}
	config := laptop.DefaultConfig(home)
	config.StopGrace = time.Second
	collector := injection.DefaultConfig(image, algorithm.DBManagerAddress(""))
	config.Wings = wings.Wings(wings.Options{Collector: &collector})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return laptop.Start(ctx, config)
}

// lab is a namespace of the cluster.
type lab struct {
	t         testing.TB
	api       client.Client
	store     observation.Store
	namespace string
	home      laptop.Home
}

func newLab(t testing.TB) *lab {
	t.Helper()
	rootlesstest.NeedNamespaces(t) // Pods find the DB manager by name only where they have hosts files
	namespace := clustertest.Namespace(t, cluster.RESTConfig())
	scheme, err := diwan.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(cluster.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(t.Context(), cluster.Home().Path("observations.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return &lab{t: t, api: api, store: store, namespace: namespace, home: cluster.Home()}
}

// trial creates a trial whose metrics are loss and acc. spec adds to its own, and
// container describes the primary one, "main".
func (l *lab) trial(name, spec, container string) {
	l.t.Helper()
	t := &v1beta1.Trial{}
	if err := yaml.Unmarshal([]byte(spec), &t.Spec); err != nil {
		l.t.Fatal(err)
	}
	var main map[string]any
	if err := yaml.Unmarshal([]byte(container), &main); err != nil {
		l.t.Fatal(err)
	}
	main["name"], main["image"] = "main", "example.com/trial"
	t.Namespace, t.Name = l.namespace, name
	t.Spec.RunSpec = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": map[string]any{
		"backoffLimit": int64(0),
		"template": map[string]any{"spec": map[string]any{
			"restartPolicy": "Never", "containers": []any{main}, "terminationGracePeriodSeconds": int64(10),
		}},
	}}}
	t.Spec.RetainRun = true
	t.Spec.PrimaryContainerName = "main"
	t.Spec.SuccessCondition = `status.conditions.#(type=="Complete")#|#(status=="True")#`
	t.Spec.FailureCondition = `status.conditions.#(type=="Failed")#|#(status=="True")#`
	t.Spec.Objective = &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: "loss", AdditionalMetricNames: []string{"acc"}}
	if err := l.api.Create(l.t.Context(), t); err != nil {
		l.t.Fatal(err)
	}
}

// ended waits for the end of a trial.
func (l *lab) ended(name string, limit time.Duration) *v1beta1.Trial {
	l.t.Helper()
	t := &v1beta1.Trial{}
	err := wait.PollUntilContextTimeout(l.t.Context(), 20*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		err := l.api.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: name}, t)
		return err == nil && t.IsCompleted(), err
	})
	if err != nil {
		l.t.Fatalf("trial %s: %v: %+v", name, err, t.Status)
	}
	return t
}

// values are those that a trial has reported of a metric.
func (l *lab) values(name, metric string) []string {
	l.t.Helper()
	points, err := l.store.Points(l.t.Context(), observation.Trial{Namespace: l.namespace, Name: name}, observation.Query{Metric: metric})
	if err != nil {
		l.t.Fatal(err)
	}
	var values []string
	for _, p := range points {
		values = append(values, p.Value)
	}
	return values
}

// log is the output of a container of a trial.
func (l *lab) log(name, container string) string {
	l.t.Helper()
	var text []byte
	files, _ := filepath.Glob(l.home.Path("logs", l.namespace+"_"+name+"*", container, "*.log"))
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			l.t.Fatal(err)
		}
		text = append(text, b...)
	}
	return string(text)
}
