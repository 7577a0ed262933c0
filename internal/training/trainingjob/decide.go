// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
	"diwan.dev/diwan/internal/platform/reconciling"
)

// plan is what to do about a job, in this order.
type plan struct {
	status         *v1.JobStatus // nil: as it is
	createServices []Replica
	create         []Replica
	delete         []*corev1.Pod
	deleteServices []*corev1.Service
	objects        []client.Object // make sure of these
	drop           []client.Object // delete these, by their names
	launcher       *batchv1.Job    // have this one, which is not as it should be
	remove         bool            // delete the job itself
	after          time.Duration   // when to look again at the latest; 0: when something changes
	lost           bool            // it rests on Pods that are not there
	events         []event
}

// event is an event about a job.
type event struct {
	warning bool
	reason  string
	message string
}

// have is what there is of a job.
type have struct {
	pods     []*corev1.Pod // those that it controls
	services []*corev1.Service
	launcher launcher // of an MPIJob of v2beta1
}

// course is what differs in the life of a job by what leads it: one of its replicas,
// or a Job beside them.
type course interface {
	begin()     // it is there
	suspend()   // it is to rest
	resume()    // it may go on, whether it rested or not
	count()     // count what it has
	over() bool // end it, if it has succeeded or cannot succeed any more
	run()       // say that it runs, if it does
	launch()    // plan what leads it beside its replicas
	ended()     // clean up, it has ended
}

// decide says what is to be done about a job, which has its defaults.
func decide(f Framework, job v1.Job, h have, now time.Time) plan {
	d := &decision{f: f, job: job, kind: job.Traits().Kind, now: metav1.NewTime(now), status: job.State().DeepCopy(), services: h.services, begun: begunReplicas(job)}
	d.course = d
	if j := v2beta1(job); j != nil {
		d.course, d.services = &launched{decision: d, j: j, have: h.launcher}, nil // its Service is one of its objects
	}
	d.sort(h.pods)
	d.course.begin()
	switch {
	case d.status.IsFinished():
		d.course.ended()
	case suspended(job):
		d.course.suspend()
	default:
		d.course.resume()
		d.advance()
	}
	return d.finish()
}

// finish completes the plan.
func (d *decision) finish() plan {
	slices.Sort(d.status.LeavingPods)
	if !d.status.IsFinished() {
		d.noteBegun()
	}
	if !equality.Semantic.DeepEqual(d.job.State(), d.status) {
		d.status.LastReconcileTime = &d.now
		d.plan.status = d.status
	}
	return d.plan
}

// decision is a plan in the making.
type decision struct {
	plan
	course   course
	f        Framework
	job      v1.Job
	kind     string
	now      metav1.Time
	status   *v1.JobStatus
	services []*corev1.Service

	all     []*corev1.Pod           // every Pod of the job
	pods    map[Replica]*corev1.Pod // those that count
	surplus []*corev1.Pod           // those of surplus replicas
	leaving []*corev1.Pod           // those that the job is getting rid of
	begun   map[Replica]bool        // those that have begun and not succeeded
	missing []Replica               // those of them that were lost: gone before their end was observed
}

// sort tells Pods apart. Those that are leaving and gone are forgotten.
func (d *decision) sort(pods []*corev1.Pod) {
	d.all, d.pods = pods, map[Replica]*corev1.Pod{}
	before := map[types.UID]bool{}
	for _, uid := range d.status.LeavingPods {
		before[uid] = true
	}
	d.status.LeavingPods = nil
	for _, p := range pods {
		r, wanted := d.replicaOf(&p.ObjectMeta)
		switch {
		case before[p.UID]:
			d.keepOut(p)
		case !wanted:
			d.surplus = append(d.surplus, p)
		default:
			d.pods[r] = p
		}
	}
	if !d.status.IsFinished() {
		d.countContainers()
	}
}

// leave deletes Pods: their outcome no longer counts, what was counted stays.
func (d *decision) leave(pods ...*corev1.Pod) {
	for _, p := range pods {
		d.keepOut(p)
		d.settle(p.Name)
	}
}

func (d *decision) keepOut(p *corev1.Pod) {
	d.leaving = append(d.leaving, p)
	d.status.LeavingPods = append(d.status.LeavingPods, p.UID)
}

// deleteLeaving deletes those leaving Pods that are not on their way.
func (d *decision) deleteLeaving() {
	for _, p := range d.leaving {
		if p.DeletionTimestamp == nil {
			d.delete = append(d.delete, p)
		}
	}
}

// advance moves a job on that is neither ended nor suspended.
func (d *decision) advance() {
	if d.status.StartTime == nil {
		d.status.StartTime = &d.now
	}
	d.course.count()
	if d.course.over() {
		return
	}
	if failed := d.failures(); len(failed) > 0 {
		d.restart(failed)
	} else {
		d.course.run()
	}
	d.leave(d.surplus...)
	d.deleteLeaving()
	d.objects = objects(d.f, d.job, d.pods)
	d.fill()
	d.course.launch()
	d.report()
}

func (d *decision) begin() {
	d.status.Set(d.now, v1.JobCreated, corev1.ConditionTrue, d.kind+"Created", fmt.Sprintf("%s %s is created.", d.kind, d.job.GetName()))
}

func (d *decision) over() bool {
	reason := d.hopeless() // which also says when to look again
	switch {
	case d.f.Done(d.job, d.pods):
		d.succeed()
	case reason != "":
		d.fail(reason)
	default:
		return false
	}
	return true
}

func (d *decision) run() {
	if lead := d.status.ReplicaStatuses[d.f.Lead(d.job)]; lead != nil && lead.Active > 0 {
		d.status.Set(d.now, v1.JobRunning, corev1.ConditionTrue, d.kind+"Running", fmt.Sprintf("%s %s is running.", d.kind, d.job.GetName()))
	}
}

func (*decision) launch() {} // a replica leads

// count counts the replicas of each type.
func (d *decision) count() {
	t := d.job.Traits()
	d.status.ReplicaStatuses = map[v1.ReplicaType]*v1.ReplicaStatus{}
	for name := range d.job.Replicas() {
		s := &v1.ReplicaStatus{}
		if t.Scales {
			s.Selector = selector(d.job, name)
		}
		d.status.ReplicaStatuses[name] = s
	}
	for r, p := range d.pods {
		s := d.status.ReplicaStatuses[r.Type]
		switch {
		case p.Status.Phase == corev1.PodSucceeded:
			s.Succeeded++
		case hasFailed(p):
			s.Failed++
		case p.Status.Phase == corev1.PodRunning:
			s.Active++
		}
	}
	d.lookForMissing()
}

// fill creates the Pods and Services that are missing. When all replicas are
// restarted together, none begins before the last one of the earlier run is
// gone.
func (d *decision) fill() {
	gone := map[string]bool{}
	for _, p := range d.leaving {
		gone[p.Name] = true
	}
	have := map[Replica]bool{}
	for _, s := range d.services {
		r, wanted := d.replicaOf(&s.ObjectMeta)
		if !wanted && s.DeletionTimestamp == nil {
			d.deleteServices = append(d.deleteServices, s)
		}
		have[r] = have[r] || wanted
	}
	together := d.job.Policy().RestartScope == v1.RestartJob && len(d.leaving) > 0
	for _, t := range d.job.Traits().Types {
		for _, r := range replicasOf(d.job, t) {
			if d.f.Named() && !have[r] {
				d.createServices = append(d.createServices, r)
			}
			if d.pods[r] == nil && !together && !gone[d.name(r)] {
				d.create = append(d.create, r)
			}
		}
	}
}

// look asks to be called again when a moment comes, and reports whether it has
// come.
func (d *decision) look(at time.Time) bool {
	wait := at.Sub(d.now.Time)
	if wait <= 0 {
		return true
	}
	d.after = reconciling.Soonest(d.after, wait)
	return false
}

func (d *decision) tell(warning bool, reason, format string, args ...any) {
	d.events = append(d.events, event{warning, reason, fmt.Sprintf(format, args...)})
}
