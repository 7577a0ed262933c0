// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// TestLauncherInfo holds that the launcher of an MPIJob is shown until that job
// is gone, and not until another one of its name is.
func TestLauncherInfo(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	shown := func() int {
		families, err := registry.Gather() // a family without metrics is left out
		if err != nil {
			t.Fatal(err)
		}
		return len(families)
	}
	_, j := readPi(t, "", "", "")
	name := client.ObjectKeyFromObject(j)
	m.launched(j)
	m.launched(j)
	m.forget(&v1.PyTorchJob{}, name)
	if n := shown(); n != 1 {
		t.Errorf("%d launchers are shown, want 1", n)
	}
	m.forget(&v1.MPIJob{}, name)
	if n := shown(); n != 0 {
		t.Errorf("%d launchers of a job that is gone are shown", n)
	}
}
