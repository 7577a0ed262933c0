// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// jobs of several forms; POLICY and RUN are replaced.
const (
	pytorchJob = `{kind: PyTorchJob, spec: {runPolicy: RUN, pytorchReplicaSpecs: {
		Master: {replicas: 1, restartPolicy: POLICY, template: {spec: {containers: [{name: pytorch, image: i}]}}},
		Worker: {replicas: 2, restartPolicy: POLICY, template: {spec: {containers: [{name: pytorch, image: i}]}}}}}}`
	elasticJob = `{kind: PyTorchJob, spec: {runPolicy: RUN, elasticPolicy: {minReplicas: 1, maxReplicas: 3}, pytorchReplicaSpecs: {
		Worker: {replicas: 2, restartPolicy: POLICY, template: {spec: {containers: [{name: pytorch, image: i}]}}}}}}`
	xgboostJob = `{kind: XGBoostJob, spec: {runPolicy: RUN, xgbReplicaSpecs: {
		Master: {replicas: 1, restartPolicy: POLICY, template: {spec: {containers: [{name: xgboost, image: i}]}}},
		Worker: {replicas: 2, restartPolicy: POLICY, template: {spec: {containers: [{name: xgboost, image: i}]}}}}}}`
	jaxJob = `{kind: JAXJob, spec: {runPolicy: RUN, jaxReplicaSpecs: {
		Worker: {replicas: 2, restartPolicy: POLICY, template: {spec: {containers: [{name: jax, image: i}]}}}}}}`
	dynamicJob = `{kind: TFJob, spec: {runPolicy: RUN, enableDynamicWorker: true, tfReplicaSpecs: {
		PS: {replicas: 1, restartPolicy: POLICY, template: {spec: {containers: [{name: tensorflow, image: i}]}}},
		Worker: {replicas: 2, restartPolicy: POLICY, template: {spec: {containers: [{name: tensorflow, image: i}]}}}}}}`
)

// TestDecide holds the rules. Each job was created a minute ago; state is what
// its status says, pods what there is.
func TestDecide(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, job, policy, run, state string
		pods                            []string
		want                            string
	}{
		"New":               {"A new job gets all its replicas", pytorchJob, "Never", "{}", "", nil, "Created create=master-0,worker-0,worker-1"},
		"Pending":           {"Pods that wait change nothing", pytorchJob, "Never", "{}", "Created", []string{"master-0 Pending", "worker-0 Pending", "worker-1 Pending"}, "Created"},
		"MasterRuns":        {"A job runs when its master does", pytorchJob, "Never", "{}", "Created", []string{"master-0 Running", "worker-0 Pending", "worker-1 Pending"}, "Created Running"},
		"WorkersRun":        {"Workers alone do not make it run", pytorchJob, "Never", "{}", "Created", []string{"master-0 Pending", "worker-0 Running", "worker-1 Running"}, "Created"},
		"OneMissing":        {"A Pod that someone deleted is made again", pytorchJob, "Never", "{}", "Created Running", []string{"master-0 Running", "worker-1 Running"}, "Created Running create=worker-0"},
		"MasterDone":        {"With the master the job is done, whatever the workers do; None keeps them", pytorchJob, "Never", "{}", "Created Running", []string{"master-0 Succeeded 0", "worker-0 Running", "worker-1 Failed 1"}, "Created (Running) Succeeded"},
		"DoneAtOnce":        {"A job that ended before anyone looked has been running all the same", pytorchJob, "Never", "{}", "", []string{"master-0 Succeeded 0", "worker-0 Running", "worker-1 Running"}, "Created (Running) Succeeded"},
		"WorkerDone":        {"A worker that is done is neither replaced nor the end", pytorchJob, "Never", "{}", "Created Running", []string{"master-0 Running", "worker-0 Succeeded 0", "worker-1 Running"}, "Created Running"},
		"Lost":              {"A replica that had begun and is gone, nobody knows how, has failed, and is counted once", pytorchJob, "OnFailure", "{}", "Created Running begun", []string{"master-0 Running", "worker-1 Running"}, "Created Restarting create=worker-0 restarts=1"},
		"LostCounted":       {"One that is counted is waited for", pytorchJob, "OnFailure", "{}", "Created Restarting begun restarts=1 but=worker-0", []string{"master-0 Running", "worker-1 Running"}, "Created Running create=worker-0 restarts=1"},
		"LostPending":       {"Until its next Pod has begun", pytorchJob, "OnFailure", "{}", "Created Running begun restarts=1 but=worker-0", []string{"master-0 Running", "worker-0 Pending", "worker-1 Running"}, "Created Running restarts=1"},
		"LostBack":          {"From then on it may be lost again", pytorchJob, "OnFailure", "{}", "Created Running begun restarts=1 but=worker-0", []string{"master-0 Running", "worker-0 Running", "worker-1 Running"}, "Created Running restarts=1"},
		"LostNever":         {"Never means never", pytorchJob, "Never", "{}", "Created Running begun", []string{"master-0 Running", "worker-1 Running"}, "Created (Running) Failed"},
		"LostOfGang":        {"A gang does not go on without one of its members", pytorchJob, "OnFailure", "{restartScope: Job}", "Created Running begun", []string{"master-0 Running", "worker-1 Running"}, "Created Restarting delete=master-0,worker-1 restarts=1"},
		"LostTwoOfGang":     {"A machine takes several with it: one restart", pytorchJob, "ExitCode", "{restartScope: Job}", "Created Running begun", []string{"worker-1 Running deleting"}, "Created Restarting restarts=1"},
		"LimitRestarting":   {"A job that failed for good does not restart", pytorchJob, "OnFailure", "{backoffLimit: 1}", "Created Restarting begun restarts=1", []string{"master-0 Failed 1", "worker-0 Running", "worker-1 Running"}, "Created (Restarting) Failed restarts=1"},
		"LostLimit":         {"Lost replicas count towards the limit", pytorchJob, "OnFailure", "{backoffLimit: 0}", "Created Running begun", []string{"master-0 Running", "worker-1 Running"}, "Created (Running) Failed"},
		"LostGrown":         {"Workers that are new have not been lost", elasticJob, "Never", "{}", "Created Running begun but=worker-1", []string{"worker-0 Running"}, "Created Running create=worker-1"},
		"LostDone":          {"One that had succeeded has not failed", jaxJob, "Never", "{}", "Created Running begun but=worker-1", []string{"worker-0 Running"}, "Created Running create=worker-1"},
		"LostBesidePending": {"A replica counts as lost though another of its type has yet to begin", elasticJob, "OnFailure", "{}", "Created Running begun but=worker-1", []string{"worker-1 Pending"}, "Created Restarting create=worker-0 restarts=1"},
		"BegunPending":      {"A Pod may wait again after its node was away", pytorchJob, "OnFailure", "{}", "Created Running begun", []string{"master-0 Running", "worker-0 Pending", "worker-1 Running"}, "Created Running"},
		"EvictedInPlace":    {"A Pod that was evicted may not say any more how often its containers were restarted", pytorchJob, "OnFailure", "{}", "Created Running begun inPlace=worker-0:3", []string{"master-0 Running", "worker-0 Failed lost", "worker-1 Running"}, "Created Restarting delete=worker-0 restarts=4"},
		"LostInPlace":       {"With a Pod that is gone its containers' restarts stay counted", pytorchJob, "OnFailure", "{}", "Created Running begun inPlace=worker-0:3,master-0:1", []string{"master-0 Running restarts=1", "worker-1 Running"}, "Created Restarting create=worker-0 restarts=4 inPlace=1"},
		"LostInPlaceInit":   {"Also those of one that had not begun", pytorchJob, "OnFailure", "{}", "Created Running begun but=worker-0 inPlace=worker-0:3", []string{"master-0 Running", "worker-1 Running"}, "Created Running create=worker-0 restarts=3"},
		"ScaledInPlace":     {"And of one that is too many", elasticJob, "OnFailure", "{}", "Created Running begun inPlace=worker-2:2", []string{"worker-0 Running", "worker-1 Running", "worker-2 Running restarts=2"}, "Created Running delete=worker-2 restarts=2"},
		"SuspendInPlace":    {"And of those that are taken away", pytorchJob, "OnFailure", "{suspend: true}", "Created Running begun inPlace=worker-0:2", []string{"master-0 Running", "worker-0 Running restarts=2", "worker-1 Running"}, "Created (Running) Suspended delete=master-0,worker-0,worker-1 restarts=2"},
		"LostTolerated":     {"A dynamic worker may go, and is made anew, which counts", dynamicJob, "Never", "{}", "Created Running begun", []string{"ps-0 Running", "worker-0 Running"}, "Created Restarting create=worker-1 restarts=1"},
		"Surplus":           {"Replicas beyond the number go", pytorchJob, "Never", "{}", "Created Running", []string{"master-0 Running", "worker-0 Running", "worker-1 Running", "worker-2 Running"}, "Created Running delete=worker-2"},
		"SurplusGoes":       {"One that is too many may go as it likes", pytorchJob, "Never", "{}", "Created Running", []string{"master-0 Running", "worker-0 Running", "worker-1 Running", "worker-2 Failed 143 leaving"}, "Created Running delete=worker-2"},
		"ScaledBack":        {"The last run of a replica that is wanted again is waited for, and its end is no failure", pytorchJob, "Never", "{}", "Created Running", []string{"master-0 Running", "worker-0 Running", "worker-1 Running leaving deleting"}, "Created Running"},
		"ElasticOne":        {"The workers of torchrun end together", elasticJob, "OnFailure", "{}", "Created Running", []string{"worker-0 Running", "worker-1 Succeeded 0"}, "Created (Running) Succeeded"},
		"JAXOne":            {"JAX is done when all are", jaxJob, "Never", "{}", "Created Running", []string{"worker-0 Succeeded 0", "worker-1 Running"}, "Created Running"},
		"JAXAll":            {"JAX is done when all are", jaxJob, "Never", "{}", "Created Running", []string{"worker-0 Succeeded 0", "worker-1 Succeeded 0"}, "Created (Running) Succeeded"},
		"Never":             {"Never means that the job fails", pytorchJob, "Never", "{}", "Created Running", []string{"master-0 Running", "worker-0 Failed 1", "worker-1 Running"}, "Created (Running) Failed"},
		"OnFailure":         {"The replica that failed is replaced", pytorchJob, "OnFailure", "{}", "Created Running", []string{"master-0 Running", "worker-0 Failed 1", "worker-1 Running"}, "Created Restarting delete=worker-0 restarts=1"},
		"OnFailureCode0":    {"Whatever container failed", pytorchJob, "Always", "{}", "Created Running", []string{"master-0 Running", "worker-0 Failed", "worker-1 Running"}, "Created Restarting delete=worker-0 restarts=1"},
		"Counted":           {"A Pod that is being replaced is not counted again, and its successor waits for its name", pytorchJob, "OnFailure", "{}", "Created Restarting restarts=1", []string{"master-0 Running", "worker-0 Failed 1 leaving", "worker-1 Running"}, "Created Running delete=worker-0 restarts=1"},
		"Replaced":          {"When it is gone, the next one comes", pytorchJob, "OnFailure", "{}", "Created Restarting restarts=1", []string{"master-0 Running", "worker-1 Running"}, "Created Running create=worker-0 restarts=1"},
		"XGBoostWorker":     {"Upstream restarts the worker and fails the job", xgboostJob, "OnFailure", "{}", "Created Running", []string{"master-0 Running", "worker-0 Failed 1", "worker-1 Running"}, "Created Restarting delete=worker-0 restarts=1"},
		"ExitRetry":         {"128 and more is another try", pytorchJob, "ExitCode", "{}", "Created Running", []string{"master-0 Running", "worker-0 Failed 137", "worker-1 Running"}, "Created Restarting delete=worker-0 restarts=1"},
		"Exit128":           {"128 is the first of these", pytorchJob, "ExitCode", "{}", "Created Running", []string{"master-0 Running", "worker-0 Failed 128", "worker-1 Running"}, "Created Restarting delete=worker-0 restarts=1"},
		"Exit127":           {"127 is the last that fails the job", pytorchJob, "ExitCode", "{}", "Created Running", []string{"master-0 Running", "worker-0 Failed 127", "worker-1 Running"}, "Created (Running) Failed"},
		"ExitLost":          {"A Pod without an exit code was lost", pytorchJob, "ExitCode", "{}", "Created Running", []string{"master-0 Running", "worker-0 Failed lost", "worker-1 Running"}, "Created Restarting delete=worker-0 restarts=1"},
		"ExitTTL":           {"A job that failed by its exit code is deleted in time; upstream's never is", pytorchJob, "ExitCode", "{ttlSecondsAfterFinished: 20}", "Created Running", []string{"master-0 Running", "worker-0 Failed 1", "worker-1 Running"}, "Created (Running) Failed after=20s"},
		"NodeLost":          {"A Pod taken away by others counts as failed; no one need delete it", pytorchJob, "OnFailure", "{}", "Created Running", []string{"master-0 Running", "worker-0 Running deleting", "worker-1 Running"}, "Created Restarting restarts=1"},
		"NodeLostNever":     {"With Never that is the end", pytorchJob, "Never", "{}", "Created Running", []string{"master-0 Running", "worker-0 Running deleting", "worker-1 Running"}, "Created (Running) Failed"},
		"PendingTaken":      {"A Pod that never ran has not failed", pytorchJob, "Never", "{}", "Created", []string{"master-0 Pending", "worker-0 Pending deleting", "worker-1 Pending"}, "Created"},
		"Dynamic":           {"A TFJob with dynamic workers goes on without those that failed", dynamicJob, "Never", "{}", "Created Running", []string{"ps-0 Running", "worker-0 Running", "worker-1 Failed 1"}, "Created Running"},
		"DynamicPS":         {"But not without parameter servers", dynamicJob, "Never", "{}", "Created Running", []string{"ps-0 Failed 1", "worker-0 Running", "worker-1 Running"}, "Created (Running) Failed"},
		"GangRestart":       {"All are restarted together, also those that are done", pytorchJob, "OnFailure", "{restartScope: Job}", "Created Running", []string{"master-0 Running", "worker-0 Failed 1", "worker-1 Succeeded 0"}, "Created Restarting delete=master-0,worker-0,worker-1 restarts=1"},
		"GangRestartOne":    {"One failure that brings the others down is one try", pytorchJob, "OnFailure", "{restartScope: Job, backoffLimit: 1}", "Created Running", []string{"master-0 Failed 1", "worker-0 Failed 1", "worker-1 Failed 1"}, "Created Restarting delete=master-0,worker-0,worker-1 restarts=1"},
		"GangWaits":         {"None begins before the last of the earlier run is gone", pytorchJob, "OnFailure", "{restartScope: Job}", "Created Restarting restarts=1", []string{"worker-1 Running leaving deleting"}, "Created Restarting restarts=1"},
		"GangAgain":         {"Then all begin", pytorchJob, "OnFailure", "{restartScope: Job}", "Created Restarting restarts=1", nil, "Created Restarting create=master-0,worker-0,worker-1 restarts=1"},
		"Limit0":            {"No retries: the first failure is the end", pytorchJob, "ExitCode", "{backoffLimit: 0}", "Created Running", []string{"master-0 Running", "worker-0 Failed 137", "worker-1 Running"}, "Created (Running) Failed"},
		"Limit1":            {"One retry", pytorchJob, "ExitCode", "{backoffLimit: 1}", "Created Running", []string{"master-0 Running", "worker-0 Failed 137", "worker-1 Running"}, "Created Restarting delete=worker-0 restarts=1"},
		"Limit1Used":        {"The second failure is the end, also by exit code, where upstream retries for ever", pytorchJob, "ExitCode", "{backoffLimit: 1}", "Created Running restarts=1", []string{"master-0 Running", "worker-0 Failed 137", "worker-1 Running"}, "Created (Running) Failed restarts=1"},
		"LimitTwo":          {"Two failures at once are two tries", pytorchJob, "ExitCode", "{backoffLimit: 1}", "Created Running", []string{"master-0 Running", "worker-0 Failed 137", "worker-1 Failed 137"}, "Created (Running) Failed"},
		"LimitInPlace":      {"What the kubelet restarts counts too", pytorchJob, "OnFailure", "{backoffLimit: 2}", "Created Running", []string{"master-0 Running restarts=1", "worker-0 Running restarts=1", "worker-1 Running"}, "Created Running inPlace=2"},
		"LimitInPlaceMet":   {"Over all replicas", pytorchJob, "OnFailure", "{backoffLimit: 2}", "Created Running", []string{"master-0 Running restarts=1", "worker-0 Running restarts=2", "worker-1 Running"}, "Created (Running) Failed inPlace=3"},
		"LimitKept":         {"What was restarted in place is not forgotten with its Pod", pytorchJob, "OnFailure", "{backoffLimit: 5}", "Created Running", []string{"master-0 Running", "worker-0 Failed 1 restarts=3", "worker-1 Running"}, "Created Restarting delete=worker-0 restarts=4"},
		"Deadline":          {"Someone looks when the time is over", pytorchJob, "Never", "{activeDeadlineSeconds: 90}", "Created Running", []string{"master-0 Running", "worker-0 Running", "worker-1 Running"}, "Created Running after=30s"},
		"DeadlineOver":      {"The time is over", pytorchJob, "Never", "{activeDeadlineSeconds: 60}", "Created Running", []string{"master-0 Running", "worker-0 Running", "worker-1 Running"}, "Created (Running) Failed"},
		"DeadlineClean":     {"What runs goes by the policy", pytorchJob, "Never", "{activeDeadlineSeconds: 60, cleanPodPolicy: Running}", "Created Running", []string{"master-0 Running", "worker-0 Pending", "worker-1 Succeeded 0"}, "Created (Running) Failed delete=master-0,worker-0"},
		"DoneInTime":        {"A job that is done at the last moment is done", pytorchJob, "Never", "{activeDeadlineSeconds: 60}", "Created Running", []string{"master-0 Succeeded 0", "worker-0 Running", "worker-1 Running"}, "Created (Running) Succeeded"},
		"CleanNone":         {"None keeps everything", pytorchJob, "Never", "{cleanPodPolicy: None}", "Created Succeeded", []string{"master-0 Succeeded 0", "worker-0 Running"}, "Created Succeeded"},
		"CleanRunning":      {"Running keeps what has ended, with its log", pytorchJob, "Never", "{cleanPodPolicy: Running}", "Created Succeeded", []string{"master-0 Succeeded 0", "worker-0 Running", "worker-1 Failed 1"}, "Created Succeeded delete=worker-0"},
		"CleanAll":          {"All keeps nothing", pytorchJob, "Never", "{cleanPodPolicy: All}", "Created Failed", []string{"master-0 Succeeded 0", "worker-0 Running", "worker-1 Failed 1"}, "Created Failed delete=master-0,worker-0,worker-1"},
		"CleanLate":         {"A Pod that appears after the end goes too", pytorchJob, "Never", "{cleanPodPolicy: All}", "Created Succeeded", []string{"worker-1 Pending"}, "Created Succeeded delete=worker-1"},
		"TTL":               {"Someone looks when it is time to delete the job", pytorchJob, "Never", "{ttlSecondsAfterFinished: 100}", "Created Succeeded", nil, "Created Succeeded after=40s"},
		"TTLOver":           {"It is time", pytorchJob, "Never", "{ttlSecondsAfterFinished: 60}", "Created Succeeded", nil, "Created Succeeded remove"},
		"TTL0":              {"At once", pytorchJob, "Never", "{ttlSecondsAfterFinished: 0}", "Created Running", []string{"master-0 Succeeded 0"}, "Created (Running) Succeeded remove"},
		"TTLUnended":        {"Not before its end", pytorchJob, "Never", "{ttlSecondsAfterFinished: 0}", "Created Running", []string{"master-0 Running", "worker-0 Running", "worker-1 Running"}, "Created Running"},
		"SuspendNew":        {"A job made suspended has no Pods", pytorchJob, "Never", "{suspend: true}", "", nil, "Created Suspended"},
		"Suspend":           {"Pods go whatever the policy", pytorchJob, "Never", "{suspend: true, cleanPodPolicy: None}", "Created Running", []string{"master-0 Running", "worker-0 Succeeded 0"}, "Created (Running) Suspended delete=master-0,worker-0"},
		"Resume":            {"They come again when the earlier ones are gone, whose end is no failure", pytorchJob, "Never", "{}", "Created (Running) Suspended", []string{"master-0 Failed 143 leaving deleting"}, "Created (Running) (Suspended) create=worker-0,worker-1"},
		"ResumeAll":         {"They come again", pytorchJob, "Never", "{activeDeadlineSeconds: 60}", "Created (Running) Suspended", nil, "Created (Running) (Suspended) create=master-0,worker-0,worker-1 after=1m0s"},
		"SuspendEnded":      {"A job that ended is not suspended, nor deleted", pytorchJob, "Never", "{suspend: true, ttlSecondsAfterFinished: 0}", "Created Succeeded", nil, "Created Succeeded"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, job := read(t, strings.NewReplacer("POLICY", tc.policy, "RUN", tc.run).Replace(tc.job))
			setState(t, job, tc.state)
			var pods []*corev1.Pod
			for _, description := range tc.pods {
				pods = append(pods, podOf(t, f, job, description))
			}
			if got := summary(job, decide(f, job, have{pods: pods}, noon)); got != tc.want {
				t.Errorf("%s:\n got %s\nwant %s", tc.reason, got, tc.want)
			}
		})
	}
}

// setState fills in a status from "Created (Running) Suspended restarts=1".
func setState(t *testing.T, job v1.Job, state string) {
	t.Helper()
	s, then := job.State(), metav1.NewTime(noon.Add(-time.Minute))
	for _, word := range strings.Fields(state) {
		name, falsely := strings.CutPrefix(strings.TrimSuffix(word, ")"), "(")
		switch {
		case word == "restarts=1":
			s.Restarts = 1
		case word == "begun":
			setBegun(job)
		case strings.HasPrefix(word, "but="):
			forgetBegun(job, strings.TrimPrefix(word, "but="))
		case strings.HasPrefix(word, "inPlace="):
			s.ContainerRestarts = map[string]int32{}
			for pair := range strings.SplitSeq(strings.TrimPrefix(word, "inPlace="), ",") {
				name, number, _ := strings.Cut(pair, ":")
				n, _ := strconv.Atoi(number)
				s.ContainerRestarts["j-"+name] = int32(n)
			}
		case falsely:
			s.Conditions = append(s.Conditions, v1.JobCondition{Type: v1.JobConditionType(name), Status: corev1.ConditionFalse})
		default:
			s.Conditions = append(s.Conditions, v1.JobCondition{Type: v1.JobConditionType(name), Status: corev1.ConditionTrue, Reason: job.Traits().Kind + name, LastTransitionTime: then})
		}
		s.StartTime = &then
	}
	if s.IsFinished() && !s.Is(v1.JobFailed) {
		s.CompletionTime = &then // upstream leaves it out at some failures
	}
}

// setBegun says that all replicas had begun.
func setBegun(job v1.Job) {
	s := job.State()
	if s.ReplicaStatuses == nil {
		s.ReplicaStatuses = map[v1.ReplicaType]*v1.ReplicaStatus{}
	}
	for name, spec := range job.Replicas() {
		s.ReplicaStatuses[name] = &v1.ReplicaStatus{BegunIndexes: fmt.Sprintf("0-%d", *spec.Replicas-1)}
	}
}

// forgetBegun says that all but one had.
func forgetBegun(job v1.Job, replica string) {
	kind, number, _ := strings.Cut(replica, "-")
	for name, counts := range job.State().ReplicaStatuses {
		if strings.EqualFold(string(name), kind) {
			indices := strings.Split(strings.ReplaceAll(counts.BegunIndexes, "0-1", "0,1"), ",")
			counts.BegunIndexes = strings.Join(slices.DeleteFunc(indices, func(i string) bool { return i == number }), ",")
		}
	}
}

// TestServices holds which Services there are.
func TestServices(t *testing.T) {
	t.Parallel()
	f, job := read(t, strings.NewReplacer("POLICY", "Never", "RUN", "{cleanPodPolicy: Running}").Replace(pytorchJob))
	first := decide(f, job, have{}, noon)
	var services []*corev1.Service
	for _, r := range append(first.createServices, Replica{v1.Worker, 7}) {
		services = append(services, newService(job, r))
	}
	if len(services) != 4 {
		t.Errorf("a job of three replicas has %d Services, want one each", len(services)-1)
	}
	p := decide(f, job, have{services: services}, noon)
	if len(p.createServices) != 0 || len(p.deleteServices) != 1 || p.deleteServices[0].Name != "j-worker-7" {
		t.Errorf("creates %v and deletes %v, want none and that of worker 7", p.createServices, p.deleteServices)
	}
	pods := []*corev1.Pod{podOf(t, f, job, "master-0 Succeeded 0"), podOf(t, f, job, "worker-0 Running"), podOf(t, f, job, "worker-1 Succeeded 0")}
	p = decide(f, job, have{pods: pods, services: services}, noon)
	if got := summary(job, p); got != "Created (Running) Succeeded delete=worker-0 deleteServices=worker-0" {
		t.Errorf("at the end: %s", got)
	}
	if s := newService(job, Replica{v1.Worker, 1}); s.Spec.ClusterIP != corev1.ClusterIPNone || len(s.Spec.Ports) != 1 || s.Spec.Ports[0].Port != 23456 {
		t.Errorf("the Service of a replica is %+v", s.Spec)
	}
}
