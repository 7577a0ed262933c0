// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// pi is the MPI operator's example, with what its CRD adds.
const pi = `{kind: MPIJob, metadata: {name: pi, namespace: default}, spec: {slotsPerWorker: 1, mpiImplementation: OpenMPI, MORE
	runPolicy: {ttlSecondsAfterFinished: 60, RUN}, sshAuthMountPath: /home/mpiuser/.ssh, mpiReplicaSpecs: {
	Launcher: {replicas: 1, template: {spec: {containers: [{name: mpi-launcher, image: mpioperator/mpi-pi:openmpi, command: [mpirun], args: [-n, "2", /home/mpiuser/pi]}]}}},
	Worker: {replicas: 2, WORKER template: {spec: {containers: [{name: mpi-worker, image: mpioperator/mpi-pi:openmpi}]}}}}}}`

// cleans is a policy of cleaning up where there is none.
func cleans(run string) string {
	if strings.Contains(run, "cleanPodPolicy") {
		return ""
	}
	return "cleanPodPolicy: Running"
}

func readPi(t testing.TB, more, run, worker string) (Framework, *v1.MPIJob) {
	t.Helper()
	f, job := read(t, strings.NewReplacer("MORE", more, "RUN", run+cleans(run), "WORKER", worker).Replace(pi))
	return f, job.(*v1.MPIJob)
}

// launcherOf makes a launcher from its description: "Running", "Complete",
// "Failed REASON", with "suspended" before it where it is; "" is none.
func launcherOf(f Framework, j *v1.MPIJob, description string) launcher {
	words := strings.Fields(description)
	if len(words) == 0 {
		return launcher{}
	}
	job := newLauncher(f, j)
	job.Spec.Suspend = ptr.To(words[0] == "suspended")
	var pods []*corev1.Pod
	pod := func(phase corev1.PodPhase, reason string) {
		pods = append(pods, &corev1.Pod{Status: corev1.PodStatus{Phase: phase, Reason: reason, Message: reason + "!"}})
	}
	ended := func(t batchv1.JobConditionType, reason string) {
		job.Status.Conditions = []batchv1.JobCondition{{Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: "Job has failed"}}
	}
	switch words[0] {
	case "Running":
		pod(corev1.PodRunning, "")
	case "Complete":
		ended(batchv1.JobComplete, "")
		job.Status.CompletionTime = &metav1.Time{Time: noon.Add(-time.Second)}
		pod(corev1.PodSucceeded, "")
	case "Failed":
		ended(batchv1.JobFailed, words[1])
		job.Status.Failed = 7
		pod(corev1.PodFailed, "OutOfMemory")
	}
	return launcher{job, pods}
}

// launchedSummary writes what a plan changes as one line.
func launchedSummary(j *v1.MPIJob, p plan) string {
	line := summary(j, p)
	if p.launcher != nil {
		line += " launcher="
		switch {
		case p.launcher.UID == "" && p.launcher.Spec.TTLSecondsAfterFinished == nil && !*p.launcher.Spec.Suspend:
			line += "runs"
		case *p.launcher.Spec.Suspend:
			line += "suspended"
		default:
			line += fmt.Sprintf("ttl %d", *p.launcher.Spec.TTLSecondsAfterFinished)
		}
	}
	s := j.Status
	if p.status != nil {
		s = *p.status
	}
	if s.Is(v1.JobFailed) {
		line += " because " + s.Condition(v1.JobFailed).Reason
	}
	return line
}

func TestDecideLaunched(t *testing.T) {
	t.Parallel()
	const deadline, waits = "activeDeadlineSeconds: 10,", "launcherCreationPolicy: WaitForWorkersReady,"
	const both = "worker-0 Running, worker-1 Running"
	cases := map[string]struct {
		reason, more, run, worker, was, pods, launcher, want string
		late                                                 time.Duration
	}{
		"New":         {reason: "workers and launcher begin at once", want: "Created create=worker-0,worker-1 launcher=runs"},
		"Waits":       {reason: "or the launcher when the workers are ready", more: waits, pods: both, want: "Created"},
		"Ready":       {reason: "which they are now", more: waits, pods: "worker-0 Running ready, worker-1 Running ready", want: "Created launcher=runs"},
		"Running":     {reason: "it runs when all run", pods: both, launcher: "Running", want: "Created Running"},
		"WorkerLate":  {reason: "a worker that does not run", pods: "worker-0 Running, worker-1 Pending", launcher: "Running", want: "Created"},
		"NotLaunched": {reason: "a launcher that does not", pods: both, launcher: "Pending", want: "Created"},
		"Done":        {reason: "the launcher's end is the job's; now its Job's time to live begins", was: "Created Running", pods: both, launcher: "Complete", want: "Created (Running) Succeeded delete=worker-0,worker-1 launcher=ttl 60"},
		"Unseen":      {reason: "that it ran is said though nobody saw it", pods: both, launcher: "Complete", want: "Created (Running) Succeeded delete=worker-0,worker-1 launcher=ttl 60"},
		"Kept":        {reason: "the workers stay where they should", run: "cleanPodPolicy: None,", was: "Created Running", pods: both, launcher: "Complete", want: "Created (Running) Succeeded launcher=ttl 60"},
		"TTL":         {reason: "also when nobody came to say so at once", was: "Created (Running) Succeeded", launcher: "Complete", want: "Created (Running) Succeeded launcher=ttl 60"},
		"Gone":        {reason: "and nothing is made again", was: "Created (Running) Succeeded", want: "Created (Running) Succeeded"},
		"Failed":      {reason: "the launcher's Job gave up", was: "Created Running", pods: both, launcher: "Failed BackoffLimitExceeded", want: "Created (Running) Failed delete=worker-0,worker-1 launcher=ttl 60 because BackoffLimitExceeded/OutOfMemory"},
		"Late":        {reason: "or its time was over", was: "Created Running", pods: both, launcher: "Failed DeadlineExceeded", want: "Created (Running) Failed delete=worker-0,worker-1 launcher=ttl 60 because DeadlineExceeded"},
		"Evicted":     {reason: "a worker that is evicted; the launcher must not go on", run: "cleanPodPolicy: None,", was: "Created Running", pods: "worker-0 Failed lost, worker-1 Running", launcher: "Running", want: "Created (Running) Failed launcher=suspended because MPIJobEvicted"},
		"Stopped":     {reason: "which is done when that is written down", run: "cleanPodPolicy: None,", was: "Created (Running) Failed", pods: "worker-1 Running", launcher: "Running", want: "Created (Running) Failed launcher=suspended because MPIJobFailed"},
		"Replaced":    {reason: "OnFailure makes a worker anew", worker: "restartPolicy: OnFailure,", was: "Created Running", pods: "worker-0 Failed lost, worker-1 Running", launcher: "Running", want: "Created Restarting delete=worker-0 restarts=1"},
		"TooOften":    {reason: "as often as may be", worker: "restartPolicy: OnFailure,", run: "backoffLimit: 0,", was: "Created Running", pods: "worker-0 Failed lost, worker-1 Running", launcher: "Running", want: "Created (Running) Failed delete=worker-1 launcher=suspended because BackoffLimitExceeded"},
		"Dead":        {reason: "a worker that has failed leaves it to mpirun", was: "Created Running", pods: "worker-0 Failed, worker-1 Running", launcher: "Running", want: "Created Running"},
		"Hopeless":    {reason: "but a launcher that waits for it would wait for ever", more: waits, pods: "worker-0 Failed, worker-1 Running", want: "Created (Running) Failed delete=worker-1 because MPIJobFailed"},
		"Deleted":     {reason: "a worker that someone deleted is made again", was: "Created Running", pods: "worker-1 Running", launcher: "Running", want: "Created Running create=worker-0"},
		"Waiting":     {reason: "a deadline counts while there is no launcher", more: waits, run: deadline, was: "Created", pods: both, late: 4 * time.Second, want: "Created after=6s"},
		"Expired":     {reason: "and ends the job", more: waits, run: deadline, was: "Created", pods: both, late: 10 * time.Second, want: "Created (Running) Failed delete=worker-0,worker-1 because DeadlineExceeded"},
		"Launched":    {reason: "with one, its Job looks at the time", run: deadline, was: "Created", pods: both, launcher: "Running", late: time.Hour, want: "Created Running"},
		"Suspended":   {reason: "a suspended job has a Job that is, and no workers", run: "suspend: true,", want: "Created Suspended launcher=suspended"},
		"Suspend":     {reason: "so has one that is suspended later", run: "suspend: true,", was: "Created Running", pods: both, launcher: "Running", want: "Created (Running) Suspended delete=worker-0,worker-1 launcher=suspended"},
		"Resume":      {reason: "and gets both again", was: "Created (Running) Suspended", launcher: "suspended", want: "Created (Running) (Suspended) create=worker-0,worker-1 launcher=runs"},
		"ResumeWaits": {reason: "the launcher then waits for the workers as one that is new", more: waits, was: "Created (Running) Suspended", pods: both, launcher: "suspended", want: "Created (Running) (Suspended)"},
		"ResumeReady": {reason: "until they are ready", more: waits, was: "Created (Running) (Suspended)", pods: "worker-0 Running ready, worker-1 Running ready", launcher: "suspended", want: "Created (Running) (Suspended) launcher=runs"},
		"ResumeDead":  {reason: "and not for ever", more: waits, was: "Created (Running) (Suspended)", pods: "worker-0 Failed, worker-1 Running", launcher: "suspended", want: "Created (Running) (Suspended) Failed delete=worker-1 launcher=suspended because MPIJobFailed"},
		"ResumeLate":  {reason: "nor longer than the deadline", more: waits, run: deadline, was: "Created (Running) (Suspended)", pods: both, launcher: "suspended", late: 10 * time.Second, want: "Created (Running) (Suspended) Failed delete=worker-0,worker-1 launcher=suspended because DeadlineExceeded"},
		"Scaled":      {reason: "a worker that is too many goes", was: "Created Running", pods: both + ", worker-2 Running", launcher: "Running", want: "Created Running delete=worker-2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, j := readPi(t, tc.more, tc.run, tc.worker)
			if tc.was != "" {
				j.Status.StartTime = &metav1.Time{Time: noon}
				j.Status.ReplicaStatuses = map[v1.ReplicaType]*v1.ReplicaStatus{v1.Worker: {}}
			}
			for word := range strings.FieldsSeq(tc.was) {
				name, status := strings.Trim(word, "()"), corev1.ConditionTrue
				if word[0] == '(' {
					status = corev1.ConditionFalse
				}
				j.Status.Conditions = append(j.Status.Conditions, v1.JobCondition{Type: v1.JobConditionType(name), Status: status, Reason: "MPIJob" + name})
			}
			var pods []*corev1.Pod
			for description := range strings.SplitSeq(tc.pods, ", ") {
				if description == "" {
					continue
				}
				ready := strings.HasSuffix(description, " ready")
				p := podOf(t, f, j, strings.TrimSuffix(description, " ready"))
				if ready {
					p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
				}
				pods = append(pods, p)
			}
			p := decide(f, j, have{pods: pods, launcher: launcherOf(f, j, tc.launcher)}, noon.Add(tc.late))
			if diff := cmp.Diff(tc.want, launchedSummary(j, p)); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
			again := j.DeepCopy()
			if p.status != nil {
				again.Status = *p.status
			}
			if p := decide(f, again, have{pods: pods, launcher: launcherOf(f, j, tc.launcher)}, noon.Add(tc.late)); p.status != nil && conditions(p.status) != conditions(&again.Status) {
				t.Errorf("%s: looking again changes %s to %s", tc.reason, conditions(&again.Status), conditions(p.status))
			}
		})
	}
}
