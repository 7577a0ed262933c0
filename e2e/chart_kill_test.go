// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"diwan.dev/diwan/internal/processcluster"
)

// Kills of operators, one of them together with the API server, and the trials
// of the experiment that they disturb.
const (
	operatorKills         = 4
	trialsOfDisturbedOnes = 30
)

// testKills kills the operator that works again and again at random moments, and
// the API server, and compares the outcome with an undisturbed run.
func (f *foreign) testKills(t *testing.T) {
	f.namespace("disturbed")
	f.namespace("undisturbed")
	diary, calm := filepath.Join(t.TempDir(), "diary"), filepath.Join(t.TempDir(), "calm")
	if err := create(t.Context(), f.any, "undisturbed", reporter("x", trialsOfDisturbedOnes, 10, calm)); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, trial := range f.succeeded(t, "undisturbed", "x", 2*time.Minute) {
		want[index(t, &trial)] = outcome(&trial)
	}

	if err := create(t.Context(), f.any, "disturbed", reporter("x", trialsOfDisturbedOnes, 4, diary)); err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("the moments come from seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range operatorKills {
		time.Sleep(time.Duration(random.IntN(2500)) * time.Millisecond)
		f.killLeader(t)
		if i == operatorKills/2 {
			f.cluster.Kill(processcluster.APIServer)
			f.cluster.Start(processcluster.APIServer)
			f.cluster.WaitServing()
		}
	}
	got := f.succeeded(t, "disturbed", "x", 3*time.Minute)
	if len(got) != trialsOfDisturbedOnes {
		t.Errorf("%d trials exist, want %d", len(got), trialsOfDisturbedOnes)
	}
	for _, trial := range got {
		i := index(t, &trial)
		if o := outcome(&trial); o != want[i] {
			t.Errorf("trial %s is %s, in an undisturbed run %s", i, o, want[i])
		}
		delete(want, i)
	}
	if len(want) > 0 {
		t.Errorf("these trials of an undisturbed run are missing: %v", want)
	}
	checkDiary(t, diary, trialsOfDisturbedOnes)
}

// outcome is what a trial tried and how it ended.
func outcome(trial *unstructured.Unstructured) string {
	metrics, _, _ := unstructured.NestedSlice(trial.Object, "status", "observation", "metrics")
	_, _, ok := condition(trial, "Succeeded")
	return fmt.Sprint(assignments(trial), metrics, ok)
}

// killLeader kills the operator that works. Its Pod is replaced, as that of a
// machine that is gone.
func (f *foreign) killLeader(t *testing.T) {
	t.Helper()
	var leader string
	eventually(t, time.Minute, func() error {
		lease, err := f.kube.CoordinationV1().Leases("kubeflow").Get(t.Context(), "diwan-operator", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if lease.Spec.HolderIdentity != nil {
			leader, _, _ = strings.Cut(*lease.Spec.HolderIdentity, "_")
		}
		for _, pod := range f.operators() {
			if pod.Name == leader && f.cluster.KillPod(pod.UID) > 0 {
				return nil
			}
		}
		return fmt.Errorf("the leader %q is no operator that lives", leader)
	})
	now := int64(0)
	if err := f.kube.CoreV1().Pods("kubeflow").Delete(t.Context(), leader, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Errorf("cannot delete the Pod of the leader: %v", err)
	}
}
