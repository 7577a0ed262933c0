// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"diwan.dev/diwan/internal/testing/chance"
)

// faulty is the namespace of the jobs that are disturbed.
const faulty = "faulty"

// ordeal is training jobs that are disturbed, on a cluster.
type ordeal struct {
	t      testing.TB
	client func() dynamic.Interface
	random *rand.Rand
	jobs   []*faultyJob // those that were made
	drawn  []*faultyJob // those that are still to be made
}

// newOrdeal draws n jobs.
func newOrdeal(t testing.TB, n int, client func() dynamic.Interface) *ordeal {
	t.Helper()
	o := &ordeal{t: t, client: client, random: chance.New(t)}
	for i := range n {
		o.drawn = append(o.drawn, newFaultyJob(i, o.random, t.TempDir()))
	}
	return o
}

// TestTrainingFaults disturbs training jobs of all kinds and policies: the
// platform is killed and stalled, Pods are deleted, jobs are suspended and go on.
// Each job ends as its policy says, no retry goes uncounted, those with checkpoints
// find them again, and nothing is left.
func TestTrainingFaults(t *testing.T) {
	t.Parallel()
	n, faults := 24, 10
	if *soak {
		n, faults = 100, 80
	}
	s := newServer(t)
	o := newOrdeal(t, n, s.client)
	for _, j := range o.drawn {
		j.resumes = o.random.IntN(2) == 0
	}
	s.kubectl(t, "create", "namespace", faulty)
	o.disturb(faults, []fault{
		{"killed", func(time.Duration) { s.kill(); s.start() }},
		{"stalled", func(away time.Duration) {
			_ = s.cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(away)
			_ = s.cmd.Process.Signal(syscall.SIGCONT)
		}},
		{"Pods deleted", func(time.Duration) { o.deletePods(false) }},
		{"suspended", func(away time.Duration) { o.rest(away) }},
		{"Pods deleted by force", func(time.Duration) { o.deletePods(true) }},
	})
	o.end(3 * time.Minute)
	o.nothingLeft()
}

// disturb makes the jobs one by one while faults happen at random moments.
func (o *ordeal) disturb(n int, faults []fault) {
	o.t.Helper()
	each := (len(o.drawn) + n - 1) / n
	for i := range n {
		for range min(each, len(o.drawn)) {
			o.make()
		}
		time.Sleep(time.Duration(o.random.IntN(1200)) * time.Millisecond)
		f, away := faults[i%len(faults)], time.Duration(o.random.IntN(2000))*time.Millisecond
		o.t.Logf("%s for %s", f.name, away)
		f.happen(away)
	}
}

// make makes the next job.
func (o *ordeal) make() {
	o.t.Helper()
	j := o.drawn[0]
	o.drawn = o.drawn[1:]
	if j.kind == "TrainJob" {
		o.create(trainJobs.GroupVersion().WithResource("trainingruntimes"), j.runtime())
	}
	o.create(j.version, j.manifest())
	o.jobs = append(o.jobs, j)
	if j.first {
		o.suspend(j, false)
	}
}

func (o *ordeal) create(resource schema.GroupVersionResource, manifest string) {
	o.t.Helper()
	object, err := decode(manifest)
	if err != nil {
		o.t.Fatal(err)
	}
	eventually(o.t, time.Minute, func() error { // an API server that is just up may lack a webhook
		_, err := o.client().Resource(resource).Namespace(faulty).Create(o.t.Context(), object, metav1.CreateOptions{})
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			o.t.Fatal(err)
		}
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// sturdy are the jobs that withstand what people do to them.
func (o *ordeal) sturdy() []*faultyJob {
	var some []*faultyJob
	for _, j := range o.jobs {
		if j.sturdy {
			some = append(some, j)
		}
	}
	o.random.Shuffle(len(some), func(a, b int) { some[a], some[b] = some[b], some[a] })
	return some
}

// deletePods deletes a running Pod of some jobs that retry.
func (o *ordeal) deletePods(force bool) {
	o.t.Helper()
	options := metav1.DeleteOptions{}
	if force {
		options.GracePeriodSeconds = new(int64)
	}
	done := 0
	for _, j := range o.sturdy() {
		for _, p := range o.pods(j) {
			if phase, _, _ := unstructured.NestedString(p.Object, "status", "phase"); phase != "Running" || p.GetDeletionTimestamp() != nil {
				continue
			}
			if err := o.client().Resource(pods).Namespace(faulty).Delete(o.t.Context(), p.GetName(), options); err == nil {
				o.t.Logf("deleted %s", p.GetName())
				j.deleted++
				done++
			}
			break
		}
		if done == 3 {
			return
		}
	}
}

// rest suspends some jobs for a while.
func (o *ordeal) rest(away time.Duration) {
	o.t.Helper()
	some := o.sturdy()
	some = some[:min(3, len(some))]
	for _, j := range some {
		o.suspend(j, true)
		j.rested++
	}
	time.Sleep(away)
	for _, j := range some {
		o.suspend(j, false)
	}
}

func (o *ordeal) suspend(j *faultyJob, suspended bool) {
	o.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"runPolicy":{"suspend":%t}}}`, suspended)
	if j.kind == "TrainJob" {
		patch = fmt.Sprintf(`{"spec":{"suspend":%t}}`, suspended)
	}
	eventually(o.t, time.Minute, func() error {
		_, err := o.client().Resource(j.version).Namespace(faulty).Patch(o.t.Context(), j.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
}

func (o *ordeal) pods(j *faultyJob) []unstructured.Unstructured {
	o.t.Helper()
	list, err := o.client().Resource(pods).Namespace(faulty).List(o.t.Context(), metav1.ListOptions{LabelSelector: j.selects()})
	if err != nil {
		o.t.Fatal(err)
	}
	return list.Items
}

// end waits until each job has come to its end, and its Pods are cleaned up as it
// says, and checks it.
func (o *ordeal) end(within time.Duration) {
	o.t.Helper()
	for len(o.drawn) > 0 {
		o.make()
	}
	deadline := time.Now().Add(within)
	for _, j := range o.jobs {
		last := o.settled(j)
		for ; last != nil && time.Now().Before(deadline); last = o.settled(j) {
			time.Sleep(20 * time.Millisecond)
		}
		if last != nil {
			o.t.Errorf("%s %s (policy %s, scope %s, limit %d, codes %v, %s %s; %d Pods deleted, %d rests; runs %v): %v",
				j.kind, j.name, j.policy, j.scope, j.limit, j.codes, j.more, j.clean, j.deleted, j.rested, o.runs(j), last)
			o.show(j)
		}
	}
}

// settled says what is not yet, or not, as it must be with a job.
func (o *ordeal) settled(j *faultyJob) error {
	object, err := o.client().Resource(j.version).Namespace(faulty).Get(o.t.Context(), j.name, metav1.GetOptions{})
	left := o.pods(j)
	switch {
	case j.want == "" && apierrors.IsNotFound(err):
		if len(left) > 0 {
			return fmt.Errorf("it is deleted, %d Pods are left", len(left))
		}
		return o.counted(j, &unstructured.Unstructured{})
	case err != nil:
		return err
	case j.want == "":
		return errors.New("it is not deleted")
	}
	want, other := j.want, "Failed"
	if want == "Failed" {
		other = "Succeeded"
	}
	if j.kind == "TrainJob" {
		want, other = strings.Replace(want, "Succeeded", "Complete", 1), strings.Replace(other, "Succeeded", "Complete", 1)
	}
	if _, _, ok := condition(object, want); !ok {
		return fmt.Errorf("it is not %s: %v", want, object.Object["status"])
	}
	for _, not := range []string{other, "Running", "Restarting"} {
		if _, _, ok := condition(object, not); ok {
			return fmt.Errorf("it is %s and %s", want, not)
		}
	}
	if err := o.cleaned(j, left); err != nil {
		return err
	}
	return o.counted(j, object)
}

// cleaned says which Pods are there that should not be.
func (o *ordeal) cleaned(j *faultyJob, left []unstructured.Unstructured) error {
	for _, p := range left {
		phase, _, _ := unstructured.NestedString(p.Object, "status", "phase")
		running := phase == "Running" || phase == "Pending"
		if j.kind == "TrainJob" && running || j.kind != "TrainJob" && (j.clean == "All" || j.clean == "Running" && running) {
			return fmt.Errorf("Pod %s is left, %s", p.GetName(), phase)
		}
	}
	return nil
}

// runs are how often each replica of a job ran.
func (o *ordeal) runs(j *faultyJob) map[string]int {
	o.t.Helper()
	runs := map[string]int{}
	files, _ := filepath.Glob(filepath.Join(j.diary, j.name+".*"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			o.t.Fatal(err)
		}
		runs[strings.TrimPrefix(filepath.Base(file), j.name+".")] = strings.Count(string(text), "\n")
	}
	return runs
}

// counted says what is wrong with how often replicas ran, and what was counted.
func (o *ordeal) counted(j *faultyJob, object *unstructured.Unstructured) error {
	runs := o.runs(j)
	if n := runs["lost"]; n > 0 {
		return fmt.Errorf("in %d runs a replica did not find its checkpoint", n)
	}
	lead, disturbed := runs[j.leads()], j.deleted+j.rested
	if j.kind == "TrainJob" {
		set, err := o.client().Resource(jobSets).Namespace(faulty).Get(o.t.Context(), j.name, metav1.GetOptions{})
		if err == nil {
			object = set
		} else if !j.endsLate {
			return err
		}
	}
	counted := retries(object)
	least, most := len(j.codes)+1, len(j.codes)+1
	switch {
	case j.endsLate:
		least, most = 0, 1
	case j.want == "Failed" && j.limit >= 0:
		least, most = j.limit+1, j.limit+1
	case j.want == "Failed":
		least, most = 1, 1
	}
	if lead < least || lead > most+disturbed {
		return fmt.Errorf("its first replica ran %d times, want %d to %d, with %d disturbances; it counts %d retries", lead, least, most, disturbed, counted)
	}
	if j.want == "" || j.endsLate {
		return nil // what counted is gone
	}
	// A Pod that was deleted may have begun and be gone before anyone looked. One that a
	// suspension ends may have restarted its container in the moment before.
	if least, most := lead-1-disturbed-j.rested, lead-1+j.deleted; counted < least || counted > most {
		return fmt.Errorf("%d retries are counted, want %d to %d", counted, least, most)
	}
	return nil
}

// show shows what is known of a job that is not as it must be.
func (o *ordeal) show(j *faultyJob) {
	object, err := o.client().Resource(j.version).Namespace(faulty).Get(o.t.Context(), j.name, metav1.GetOptions{})
	if err == nil {
		o.t.Logf("%v", object.Object["status"])
	}
	for _, p := range o.pods(j) {
		o.t.Logf("%s deleted %v: %v", p.GetName(), p.GetDeletionTimestamp(), p.Object["status"])
	}
}

// nothingLeft deletes the jobs, and wants nothing of theirs to be left.
func (o *ordeal) nothingLeft() {
	o.t.Helper()
	for _, j := range o.jobs {
		err := o.client().Resource(j.version).Namespace(faulty).Delete(o.t.Context(), j.name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			o.t.Fatal(err)
		}
	}
	var remaining = []schema.GroupVersionResource{
		pods, {Version: "v1", Resource: "services"}, {Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "serviceaccounts"},
		{Version: "v1", Resource: "secrets"}, {Group: "batch", Version: "v1", Resource: "jobs"}, jobSets,
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
		{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}, {Version: "v1", Resource: "persistentvolumeclaims"},
	}
	for _, resource := range remaining {
		eventually(o.t, time.Minute, func() error {
			list, err := o.client().Resource(resource).Namespace(faulty).List(context.WithoutCancel(o.t.Context()), metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, item := range list.Items {
				if name := item.GetName(); name != "kube-root-ca.crt" && name != "default" {
					return fmt.Errorf("%s %s is left", resource.Resource, name)
				}
			}
			return nil
		})
	}
}
