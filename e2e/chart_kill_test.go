// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"diwan.dev/diwan/internal/testing/processcluster"
)

// testKills has every part of the platform and of the cluster killed at random
// moments, alone and together, while trials and training jobs of all kinds and policies
// run, to which people do things, too. Trials end as in an undisturbed run, jobs as
// their policies say.
func (f *foreign) testKills(t *testing.T) {
	trials, jobs, faults := 30, 16, 9
	if *soak {
		trials, jobs, faults = 300, 100, 81
	}
	f.namespace("disturbed")
	f.namespace("undisturbed")
	diary, calm := filepath.Join(t.TempDir(), "diary"), filepath.Join(t.TempDir(), "calm")
	if err := create(t.Context(), f.any, "undisturbed", reporter("x", trials, 10, calm)); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, trial := range f.succeeded(t, "undisturbed", "x", 5*time.Minute) {
		want[index(t, &trial)] = outcome(&trial)
	}

	if err := create(t.Context(), f.any, "disturbed", reporter("x", trials, 4, diary)); err != nil {
		t.Fatal(err)
	}
	o := newOrdeal(t, jobs, func() dynamic.Interface { return f.any })
	for _, j := range o.drawn {
		j.placement = anyMachine
	}
	o.disturb(faults, append(f.faults(t),
		fault{"Pods deleted", func(time.Duration) { o.deletePods(false) }},
		fault{"suspended", func(away time.Duration) { o.rest(away) }},
		fault{"second machine away", func(away time.Duration) {
			f.cluster.KillMachine(processcluster.SecondNode)
			time.Sleep(away)
			f.cluster.Start(processcluster.SecondNode)
			for _, j := range o.jobs {
				j.rested++ // what ran there runs again
			}
		}},
	))
	o.end(4 * time.Minute)
	o.nothingLeft()

	got := f.succeeded(t, "disturbed", "x", 5*time.Minute)
	if len(got) != trials {
		t.Errorf("%d trials exist, want %d", len(got), trials)
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
	checkDiary(t, diary, trials)
}

// faults are those of the operators, their database and the parts of the
// cluster.
func (f *foreign) faults(t *testing.T) []fault {
	away := func(parts ...processcluster.Part) func(time.Duration) {
		return func(away time.Duration) {
			for _, part := range parts {
				f.cluster.Kill(part)
			}
			time.Sleep(away)
			for _, part := range parts {
				f.cluster.Start(part)
			}
			f.cluster.WaitServing()
		}
	}
	all := away(processcluster.Etcd, processcluster.APIServer, processcluster.ControllerManager, processcluster.Scheduler, processcluster.Node)
	cut := func(away time.Duration) {
		f.link.cut(true)
		time.Sleep(away)
		f.link.cut(false)
	}
	return []fault{
		{"operator killed", func(time.Duration) { f.killLeader(t) }},
		{"API server away", away(processcluster.APIServer)},
		{"database away", cut},
		{"node away", away(processcluster.Node)},
		{"etcd away", away(processcluster.Etcd)},
		{"operator killed, all else away", func(away time.Duration) {
			f.killLeader(t)
			var both sync.WaitGroup
			both.Go(func() { cut(away) })
			all(away)
			both.Wait()
		}},
	}
}

// outcome is what a trial tried and how it ended.
func outcome(trial *unstructured.Unstructured) string {
	metrics, _, _ := unstructured.NestedSlice(trial.Object, "status", "observation", "metrics")
	_, _, ok := condition(trial, "Succeeded")
	return fmt.Sprint(assignments(trial), metrics, ok)
}

// leader tells which operator works, by the name of its Pod and, after "_", what
// tells the runs of that apart. It is empty while there is none.
func (f *foreign) leader(t *testing.T) (string, error) {
	lease, err := f.kube.CoordinationV1().Leases("kubeflow").Get(t.Context(), "diwan-operator", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "", err
	}
	return *lease.Spec.HolderIdentity, nil
}

// killLeader kills the active operator. Its Pod is replaced, as that of a
// machine that is gone.
func (f *foreign) killLeader(t *testing.T) {
	t.Helper()
	var leader string
	eventually(t, time.Minute, func() error {
		run, err := f.leader(t)
		if err != nil {
			return err
		}
		leader, _, _ = strings.Cut(run, "_")
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
