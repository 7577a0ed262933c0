// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// trialsOfUpgraded returns the trials of an experiment that continues while
// Diwan is upgraded, and then rolled back.
const trialsOfUpgraded = 60

// testUpgrade upgrades to a next version, which has another image and another
// definition of Experiments, and goes back, while an experiment runs: none of
// its trials is lost or made twice, and nobody's experiment is rejected.
func (f *foreign) testUpgrade(t *testing.T) {
	f.namespace("upgraded")
	diary := filepath.Join(t.TempDir(), "diary")
	if err := create(t.Context(), f.any, "upgraded", reporter("x", trialsOfUpgraded, 1, diary)); err != nil {
		t.Fatal(err)
	}
	next := t.TempDir()
	f.shell(t, fmt.Sprintf(`
		cp -rL charts/diwan %[1]s/diwan
		sed -i 's/^version: .*/version: 0.1.0/' %[1]s/diwan/Chart.yaml
		sed -i 's/^    - jsonPath: .metadata.creationTimestamp/    - jsonPath: .status.trials\n      name: Next\n      type: integer\n&/' %[1]s/diwan/files/crd/kubeflow.org_experiments.yaml`, next))
	if columns := f.columns(t); strings.Contains(columns, "Next") {
		t.Fatalf("the definition has the next version's columns %s already", columns)
	}
	f.undisturbed(t, func() {
		f.follow(t, "upgrade", "charts/diwan", next+"/diwan", "--wait", "--wait --timeout 3m")
	})
	f.version(t, "v2", true)
	f.undisturbed(t, func() { f.follow(t, "rollback", "--wait", "--wait --timeout 3m") })
	f.version(t, "v1", false)
	if got := len(f.succeeded(t, "upgraded", "x", 2*time.Minute)); got != trialsOfUpgraded {
		t.Errorf("%d trials exist, want %d", got, trialsOfUpgraded)
	}
	checkDiary(t, diary, trialsOfUpgraded)
}

// version wants operators of an image alone, and the definition of Experiments
// that belongs to them.
func (f *foreign) version(t *testing.T, tag string, column bool) {
	t.Helper()
	for _, pod := range f.operators() {
		if image := pod.Spec.Containers[0].Image; pod.DeletionTimestamp == nil && image != imageOfDiwan+":"+tag {
			t.Errorf("an operator runs %s, want %s", image, tag)
		}
	}
	if columns := f.columns(t); strings.Contains(columns, "Next") != column {
		t.Errorf("with %s the definition has the columns %s", tag, columns)
	}
}

// columns are those of the definition of Experiments.
func (f *foreign) columns(t *testing.T) string {
	t.Helper()
	definitions := f.any.Resource(gvr("apiextensions.k8s.io/v1", "customresourcedefinitions"))
	definition, err := definitions.Get(t.Context(), "experiments.kubeflow.org", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	return fmt.Sprint(versions[0].(map[string]any)["additionalPrinterColumns"])
}

// undisturbed wants every experiment that is created while do runs to be
// accepted.
func (f *foreign) undisturbed(t *testing.T, do func()) {
	t.Helper()
	dry, err := decode(reporter("dry", 1, 1, "/dev/null"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int)
	go func() {
		asked := 0
		defer func() { done <- asked }()
		for ; ctx.Err() == nil; asked++ {
			_, err := f.any.Resource(experiments).Namespace("default").Create(ctx, dry, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil && ctx.Err() == nil {
				t.Errorf("an experiment is refused: %v", err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	defer func() {
		stop()
		if asked := <-done; asked < 10 {
			t.Errorf("only %d experiments were tried", asked)
		}
	}()
	do()
}

// gvr names a resource.
func gvr(version, resource string) schema.GroupVersionResource {
	group, err := schema.ParseGroupVersion(version)
	if err != nil {
		panic(err)
	}
	return group.WithResource(resource)
}
