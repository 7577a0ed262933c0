// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	trainJobs = schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"}
	jobSets   = schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}
)

// kindOfJob is a kind of training job as faults meet it.
type kindOfJob struct {
	kind, field, container string
	// replicas are those beside the leader, and what they run: "work" as the
	// leader does at its last try, or "wait" until they are taken away.
	leader  string
	others  map[string]string
	version schema.GroupVersionResource
}

func kindsOfJobs() []kindOfJob {
	v1 := func(kind, field, container, leader string, others map[string]string) kindOfJob {
		resource := schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: strings.ToLower(kind) + "s"}
		return kindOfJob{kind, field, container, leader, others, resource}
	}
	return []kindOfJob{
		v1("PyTorchJob", "pytorchReplicaSpecs", "pytorch", "Master", map[string]string{"Worker": "work"}),
		v1("TFJob", "tfReplicaSpecs", "tensorflow", "Chief", map[string]string{"PS": "wait", "Worker": "work"}),
		v1("XGBoostJob", "xgbReplicaSpecs", "xgboost", "Master", map[string]string{"Worker": "wait"}),
		v1("PaddleJob", "paddleReplicaSpecs", "paddle", "Master", map[string]string{"Worker": "work"}),
		v1("JAXJob", "jaxReplicaSpecs", "jax", "Worker", nil),
		v1("MXJob", "mxReplicaSpecs", "mxnet", "Scheduler", map[string]string{"Server": "wait", "Worker": "wait"}),
		v1("MPIJob", "mpiReplicaSpecs", "mpi", "Launcher", map[string]string{"Worker": "wait"}),
		{kind: "TrainJob", version: trainJobs},
	}
}

// faultyJob is a job, what it does, and what must become of it.
type faultyJob struct {
	kindOfJob
	name string

	policy string // restart policy of the leader
	scope  string // what is restarted: Replica or Job
	codes  []int  // how the leader's runs end; those beyond succeed
	limit  int    // of retries; -1: none
	clean  string
	more   string // more of the run policy
	sleep  string // seconds of a run
	first  bool   // made suspended

	want     string // the condition in which it must end; "": none, it is deleted
	sturdy   bool   // its Pods may be deleted, and it may be suspended
	deleted  int    // Pods deleted by the test
	rested   int    // times it was suspended by the test
	diary    string // a directory: each replica's runs, one a line
	endsLate bool   // by its deadline
	resumes  bool   // it has a directory for checkpoints

	placement string // of its Pods, fields of their spec, "" for the usual
}

// newFaultyJob draws the i-th job: kinds and forms come in turn, the rest by
// chance.
func newFaultyJob(i int, random *rand.Rand, diary string) *faultyJob {
	kinds := kindsOfJobs()
	j := &faultyJob{
		kindOfJob: kinds[i%len(kinds)], name: fmt.Sprintf("job-%03d", i), limit: -1,
		policy: "ExitCode", scope: []string{"Replica", "Job"}[random.IntN(2)],
		clean: []string{"All", "Running", "None"}[random.IntN(3)],
		sleep: []string{"0.2", "0.7", "2", "4"}[random.IntN(4)], want: "Succeeded", diary: diary,
	}
	retrying := []string{"OnFailure", "Always", "ExitCode"}
	switch (i/len(kinds) + i) % 8 { // each kind meets each form
	case 0: // fails, and is retried
		j.policy, j.codes, j.sturdy = retrying[random.IntN(3)], []int{137, 255}[:1+random.IntN(2)], true
		if j.policy == "Always" {
			j.scope = "Job" // else kubelet restarts the leader when it has succeeded, too
		}
	case 1: // fails too often
		j.limit = random.IntN(3)
		j.codes, j.want = []int{137, 137, 137, 137}, "Failed"
	case 2: // fails for good
		j.policy, j.codes, j.want = []string{"ExitCode", "Never"}[random.IntN(2)], []int{1, 1, 1, 1}, "Failed"
	case 3: // needs no retry
		j.policy = "Never"
	case 4: // takes too long
		j.more, j.sleep, j.want, j.endsLate = "activeDeadlineSeconds: 6, ", "1000", "Failed", true
	case 5: // is made suspended
		j.first, j.sturdy, j.codes = true, true, []int{130}
	case 6: // is deleted some time after its end
		j.more, j.want = "ttlSecondsAfterFinished: 1, ", ""
		if j.kind == "TrainJob" {
			j.want = "Succeeded" // TrainJobs stay
		}
	case 7: // is retried within its limit
		j.limit, j.codes = 2, []int{139, 134}
	}
	return j
}

// program is what a container runs. A run is written down where no part of the
// platform has a hand, and its number says how it ends.
func (j *faultyJob) program(role string) string {
	if role == "wait" {
		return "exec sleep 1000"
	}
	codes := "0"
	if role == "lead" {
		words := make([]string, len(j.codes)+1)
		for i, code := range j.codes {
			words[i] = strconv.Itoa(code)
		}
		words[len(j.codes)] = "0"
		codes = strings.Join(words, " ")
	}
	me := "$ME"
	if j.kind == "TrainJob" {
		me = "node-$JOB_COMPLETION_INDEX"
	}
	// A run that was begun is in the checkpoint before it is in the diary. Only the
	// first replica of the leader's type fails.
	return fmt.Sprintf(`f=%[1]s/%[2]s.%[3]s; if [ -n "$CHECKPOINT_DIR" ]; then c=$CHECKPOINT_DIR/%[3]s; touch $c $f; [ $(wc -l <$c) -ge $(wc -l <$f) ] || echo $UID_OF_POD >>%[1]s/%[2]s.lost; echo $UID_OF_POD >>$c; fi
echo $UID_OF_POD >>$f; n=$(wc -l <$f); sleep %[4]s; case %[3]s in *-0|*-launcher) ;; *) exit 0;; esac; set -- %[5]s; [ $n -gt $# ] && n=$#; eval exit \${$n}`,
		j.diary, j.name, me, j.sleep, codes)
}

func (j *faultyJob) pod(role string) string {
	field := func(name, path string) string {
		return fmt.Sprintf("{name: %s, valueFrom: {fieldRef: {fieldPath: %s}}}", name, path)
	}
	return fmt.Sprintf("{spec: {terminationGracePeriodSeconds: 1, %scontainers: [{name: %s, image: i, command: [sh, -c, %q], env: [%s, %s]}]}}",
		j.placement, j.container, j.program(role), field("ME", "metadata.name"), field("UID_OF_POD", "metadata.uid"))
}

// pods is how many Pods the job has: two leaders, or one and one of each other type.
func (j *faultyJob) pods() int { return max(2, 1+len(j.others)) }

// manifest is the job as users write it.
func (j *faultyJob) manifest() string {
	if j.kind == "TrainJob" {
		return j.trainJob()
	}
	var specs []string
	spec := func(replicaType string, n int, policy, role string) {
		specs = append(specs, fmt.Sprintf("    %s: {replicas: %d, restartPolicy: %s, template: %s}", replicaType, n, policy, j.pod(role)))
	}
	leaders := 1
	if len(j.others) == 0 {
		leaders = 2
	}
	spec(j.leader, leaders, j.policy, "lead")
	for t, role := range j.others {
		policy := "OnFailure"
		if j.policy == "Never" {
			policy = "Never"
		}
		spec(t, 1, policy, role)
	}
	slices.Sort(specs)
	limit, mode, checkpoint := "", "", ""
	if j.resumes {
		checkpoint = "checkpoint: {storage: 1Mi}, "
	}
	if j.limit >= 0 {
		limit = fmt.Sprintf("backoffLimit: %d, ", j.limit)
	}
	if j.kind == "MXJob" {
		mode = "jobMode: MXTrain"
	}
	return fmt.Sprintf(`
apiVersion: kubeflow.org/v1
kind: %s
metadata: {name: %s}
spec:
  %s
  runPolicy: {cleanPodPolicy: %s, restartScope: %s, %s%s%ssuspend: %t}
  %s:
%s
`, j.kind, j.name, mode, j.clean, j.scope, limit, checkpoint, j.more, j.first, j.field, strings.Join(specs, "\n"))
}

// trainJob is a TrainJob with a runtime of its own.
func (j *faultyJob) trainJob() string {
	deadline := ""
	if j.endsLate {
		deadline = strings.TrimSuffix(j.more, ", ")
	}
	checkpoint := "null"
	if j.resumes {
		checkpoint = "{storage: 1Mi}"
	}
	return fmt.Sprintf(`
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: %[1]s}
spec:
  suspend: %[2]t
  runtimeRef: {kind: TrainingRuntime, name: %[1]s}
  trainer: {numNodes: 2, command: [sh, -c, %[3]q]}
  checkpoint: %[4]s
  %[5]s
`, j.name, j.first, j.program("lead"), checkpoint, deadline)
}

// runtime is the runtime of a TrainJob.
func (j *faultyJob) runtime() string {
	limit := j.limit
	switch {
	case j.policy == "Never", len(j.codes) > 0 && j.codes[0] == 1:
		limit = 0 // JobSets do not tell exit codes apart
	case limit < 0:
		limit = 1000
	}
	return fmt.Sprintf(`
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: %s, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 1, torch: {}}
  template:
    spec:
      failurePolicy: {maxRestarts: %d}
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            backoffLimit: 0
            template:
              spec: {%srestartPolicy: Never, terminationGracePeriodSeconds: 1, containers: [
              {name: node, image: i, env: [{name: UID_OF_POD, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}]}]}
`, j.name, limit, j.placement)
}

// leads is the name of the replica that fails, as its diary has it.
func (j *faultyJob) leads() string {
	switch j.kind {
	case "TrainJob":
		return "node-0"
	case "MPIJob":
		return j.name + "-launcher"
	}
	return j.name + "-" + strings.ToLower(j.leader) + "-0"
}

// selects are the Pods of the job.
func (j *faultyJob) selects() string {
	if j.kind == "TrainJob" {
		return "jobset.sigs.k8s.io/jobset-name=" + j.name
	}
	return "training.kubeflow.org/job-name=" + j.name
}

// retries are those that the job counted: by making Pods anew, and by the kubelet
// within Pods.
func retries(object *unstructured.Unstructured) int {
	n := int(count(object, "restarts"))
	inPlace, _, _ := unstructured.NestedMap(object.Object, "status", "containerRestarts")
	for _, restarts := range inPlace {
		restarts, _ := restarts.(int64)
		n += int(restarts)
	}
	return n
}
