// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"diwan.dev/diwan/internal/testing/processcluster"
)

// The placement of Pods: on the first machine or the second one, whose taint keeps
// others away, and on the second one as long as that lives.
const (
	ofSecond      = "diwan.dev/second-machine"
	anyMachine    = `tolerations: [{key: ` + ofSecond + `}], `
	secondMachine = `affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: ` +
		`{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [` + string(processcluster.SecondNode) + `]}]}}]}}, ` +
		`tolerations: [{key: ` + ofSecond + `}, {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute%s}], `
)

// death is what the death of a machine does to the jobs that run there.
type death struct {
	f     *foreign
	o     *ordeal
	waits *faultyJob // the job that waits for the machine
}

// newDeath adds a second machine to the cluster, and draws the jobs that run on
// it: those of each kind that start over elsewhere, and those that do not.
func (f *foreign) newDeath(t *testing.T) *death {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: string(processcluster.SecondNode)}}
	node.Spec.Taints = []corev1.Taint{{Key: ofSecond, Effect: corev1.TaintEffectNoSchedule}}
	if _, err := f.kube.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.cluster.AddNode()
	f.namespace(faulty)
	d := &death{f: f, o: newOrdeal(t, 0, func() dynamic.Interface { return f.any })}
	job := func(name string, kind kindOfJob) *faultyJob {
		j := &faultyJob{
			kindOfJob: kind, name: name, policy: "OnFailure", scope: "Job", clean: "None", limit: -1,
			// The first run ends with the machine.
			sleep: "$([ $n = 1 ] && echo 1000 || echo 0)", want: "Succeeded", diary: t.TempDir(),
			placement: fmt.Sprintf(secondMachine, ", tolerationSeconds: 1"),
		}
		d.o.drawn = append(d.o.drawn, j)
		return j
	}
	kinds := kindsOfJobs()
	for i, kind := range kinds {
		j := job(fmt.Sprintf("begins-anew-%d", i), kind)
		j.scope, j.limit = []string{"Job", "Replica"}[i%2], []int{1, -1}[i%2]
	}
	for name, policy := range map[string]string{"never-again": "Never", "no-retry": "OnFailure"} {
		j := job(name, kinds[0])
		j.policy, j.want, j.limit = policy, "Failed", 0
	}
	d.waits = job("waits", kinds[0])
	d.waits.placement = fmt.Sprintf(secondMachine, "")
	return d
}

// testDies has the machine die when all of the jobs have begun on it.
func (d *death) testDies(t *testing.T) {
	d.o.t = t
	for len(d.o.drawn) > 0 {
		d.o.make()
	}
	for _, j := range d.o.jobs {
		eventually(t, time.Minute, func() error { return d.begun(j) })
	}
	d.f.cluster.KillMachine(processcluster.SecondNode)
}

// begun says what a job lacks until it runs on the second machine, and knows it.
func (d *death) begun(j *faultyJob) error {
	pods := d.o.pods(j)
	if len(pods) != j.pods() {
		return fmt.Errorf("%s %s has %d Pods, want %d", j.kind, j.name, len(pods), j.pods())
	}
	for _, p := range pods {
		spec, _ := p.Object["spec"].(map[string]any)
		status, _ := p.Object["status"].(map[string]any)
		if status["phase"] != "Running" || spec["nodeName"] != string(processcluster.SecondNode) {
			return fmt.Errorf("Pod %s is %v on %v: %v", p.GetName(), status["phase"], spec["nodeName"], status)
		}
	}
	if d.o.runs(j)[j.leads()] != 1 {
		return fmt.Errorf("%s %s has not written down that it runs", j.kind, j.name)
	}
	object, err := d.o.client().Resource(j.version).Namespace(faulty).Get(d.o.t.Context(), j.name, metav1.GetOptions{})
	if err != nil || j.kind == "TrainJob" {
		return err
	}
	if _, _, ok := condition(object, "Running"); !ok {
		return fmt.Errorf("%s %s is not Running: %v", j.kind, j.name, object.Object["status"])
	}
	return nil
}

// testDead wants each job to have ended as its policy says, but for the one that
// waits for the machine.
func (d *death) testDead(t *testing.T) {
	d.o.t = t
	all := d.o.jobs
	d.o.jobs = nil
	for _, j := range all {
		if j != d.waits {
			d.o.jobs = append(d.o.jobs, j)
			j.deleted = d.losses(j)
		}
	}
	d.o.end(2 * time.Minute)
	for _, j := range d.o.jobs {
		uids, restarts := d.uids(j), d.restarts(j)
		switch {
		case j.want == "Failed" && (len(uids) != 1 || restarts != 0):
			t.Errorf("%s %s ran in the Pods %v, with %d restarts; want one, without", j.kind, j.name, uids, restarts)
		case j.want != "Failed" && (len(uids) != 2 || uids[0] == uids[1] || restarts != d.losses(j)):
			t.Errorf("%s %s ran in the Pods %v, with %d restarts; want one and then another, with %d", j.kind, j.name, uids, restarts, d.losses(j))
		}
	}
	d.o.jobs = all
}

// losses is how often the loss of all of its Pods counts with a job.
func (d *death) losses(j *faultyJob) int {
	if j.scope == "Job" || j.kind == "TrainJob" {
		return 1
	}
	return j.pods()
}

// restarts are those that a job counts.
func (d *death) restarts(j *faultyJob) int {
	resource := j.version
	if j.kind == "TrainJob" {
		resource = jobSets
	}
	object, err := d.o.client().Resource(resource).Namespace(faulty).Get(d.o.t.Context(), j.name, metav1.GetOptions{})
	if err != nil {
		d.o.t.Fatal(err)
	}
	return int(count(object, "restarts"))
}

// testBack has the machine come back: it ends what is no more, and its own job
// goes on.
func (d *death) testBack(t *testing.T) {
	d.o.t = t
	if uids := d.uids(d.waits); len(uids) != 1 {
		t.Errorf("the job that waits for its machine ran in the Pods %v", uids)
	}
	d.f.cluster.Start(processcluster.SecondNode)
	d.f.cluster.WaitNode(processcluster.SecondNode)
	d.waits.rested++
	d.o.end(time.Minute)
	if uids := d.uids(d.waits); len(uids) != 2 || uids[0] != uids[1] {
		t.Errorf("the job that waits for its machine ran in the Pods %v, want the same twice", uids)
	}
	d.o.nothingLeft()
	eventually(t, time.Minute, func() error { return d.f.cluster.Empty(processcluster.SecondNode) })
}

// uids are those of the Pods in which a job's first replica ran.
func (d *death) uids(j *faultyJob) []string {
	text, err := os.ReadFile(filepath.Join(j.diary, j.name+"."+j.leads()))
	if err != nil {
		d.o.t.Fatal(err)
	}
	return strings.Fields(string(text))
}
