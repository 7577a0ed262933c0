// SPDX-License-Identifier: Apache-2.0

package diwan_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "diwan.dev/diwan/api/jobset/v1alpha2"
	"diwan.dev/diwan/api/trainer/v1alpha1"
)

// runtime creates a runtime whose Pods the test runs.
func (l *lab) runtime(name string, change func(*jobset.JobSetSpec)) {
	l.t.Helper()
	node := jobset.ReplicatedJob{Name: v1alpha1.Node}
	node.Template.Labels = map[string]string{v1alpha1.LabelAncestor: v1alpha1.AncestorTrainer}
	node.Template.Spec.BackoffLimit = ptr.To(int32(0))
	node.Template.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		NodeSelector:  map[string]string{"diwan.dev/test": "the-test-is-the-node"},
		Containers:    []corev1.Container{{Name: v1alpha1.Node, Image: "none", Command: []string{"train"}, Args: []string{"1"}}},
	}
	r := &v1alpha1.TrainingRuntime{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name}}
	r.Spec.MLPolicy = &v1alpha1.MLPolicy{Torch: &v1alpha1.TorchMLPolicySource{}}
	r.Spec.Template.Spec.ReplicatedJobs = []jobset.ReplicatedJob{node}
	if change != nil {
		change(&r.Spec.Template.Spec)
	}
	if err := l.client.Create(l.t.Context(), r); err != nil {
		l.t.Fatal(err)
	}
}

// trainJob creates a job on a runtime of the namespace.
func (l *lab) trainJob(name, runtime string, changes ...func(*v1alpha1.TrainJob)) *v1alpha1.TrainJob {
	l.t.Helper()
	job := l.newTrainJob(name, runtime, changes...)
	if err := l.client.Create(l.t.Context(), job); err != nil {
		l.t.Fatal(err)
	}
	return job
}

func (l *lab) newTrainJob(name, runtime string, changes ...func(*v1alpha1.TrainJob)) *v1alpha1.TrainJob {
	job := &v1alpha1.TrainJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name},
		Spec: v1alpha1.TrainJobSpec{
			RuntimeRef: v1alpha1.RuntimeRef{Name: runtime, Kind: ptr.To(v1alpha1.TrainingRuntimeKind)},
			Trainer:    &v1alpha1.Trainer{NumNodes: ptr.To(int32(2))},
		},
	}
	for _, change := range changes {
		change(job)
	}
	return job
}

// waitForJob waits until a job has a condition that is true, and returns it.
func (l *lab) waitForJob(job *v1alpha1.TrainJob, condition string) *metav1.Condition {
	l.t.Helper()
	l.eventually(func() string {
		l.get(job)
		if meta.IsStatusConditionTrue(job.Status.Conditions, condition) {
			return ""
		}
		return fmt.Sprintf("condition %s in %+v", condition, job.Status)
	})
	return meta.FindStatusCondition(job.Status.Conditions, condition)
}

// waitForPods waits until so many Pods of a job are there, and no others.
func (l *lab) waitForPods(job *v1alpha1.TrainJob, n int) {
	l.t.Helper()
	l.eventually(func() string {
		var pods corev1.PodList
		if err := l.client.List(l.t.Context(), &pods, client.InNamespace(l.namespace), client.MatchingLabels{jobset.LabelJobSetName: job.Name}); err != nil {
			return err.Error()
		}
		if len(pods.Items) == n {
			return ""
		}
		return fmt.Sprintf("%d Pods, there are %d", n, len(pods.Items))
	})
}

func forever(ctx context.Context, _ *corev1.Pod) (string, int32) { <-ctx.Done(); return "", 0 }

func TestTrainJob(t *testing.T) {
	l := newLab(t, func(_ context.Context, pod *corev1.Pod) (string, int32) { return "", 0 })
	l.runtime("plain", nil)
	job := l.trainJob("whole", "plain")
	if c := l.waitForJob(job, v1alpha1.ConditionComplete); c.Reason != jobset.ReasonAllJobsCompleted || c.Message != "jobset completed successfully" {
		t.Errorf("the job ended with %+v", c)
	}
	one, none := ptr.To(int32(1)), ptr.To(int32(0))
	l.eventually(func() string {
		l.get(job)
		if len(job.Status.JobsStatus) == 1 && *job.Status.JobsStatus[0].Succeeded == *one && *job.Status.JobsStatus[0].Active == *none {
			return ""
		}
		return fmt.Sprintf("counts in %+v", job.Status.JobsStatus)
	})
	run := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "whole-node-0"}}
	l.get(run)
	var env []string
	for _, e := range run.Spec.Template.Spec.Containers[0].Env {
		env = append(env, e.Name+"="+e.Value)
	}
	want := []string{"PET_NNODES=2", "PET_NPROC_PER_NODE=1", "PET_NODE_RANK=", "PET_MASTER_ADDR=whole-node-0-0.whole", "PET_MASTER_PORT=29500",
		"KUBEFLOW_TRAINER_SERVER_URL=https://kubeflow-trainer-controller-manager.kubeflow-system.svc:10443" + v1alpha1.StatusPath(l.namespace, "whole"),
		"KUBEFLOW_TRAINER_SERVER_CA_CERT=/var/run/secrets/kubeflow/trainer/ca.crt", "KUBEFLOW_TRAINER_SERVER_TOKEN=/var/run/secrets/kubeflow/trainer/token"}
	if !slices.Equal(env, want) || *run.Spec.Completions != 2 || *run.Spec.Parallelism != 2 || run.Spec.Template.Spec.Subdomain != "whole" {
		t.Errorf("the Job has %v, want %v; its spec is %+v", env, want, run.Spec)
	}
	l.get(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "whole"}})
}

// TestTrainJobRestarts has the nodes fail: the whole job is restarted, as often
// as the runtime's policy says, and its end outlives its JobSet.
func TestTrainJobRestarts(t *testing.T) {
	var runs atomic.Int32
	l := newLab(t, func(_ context.Context, pod *corev1.Pod) (string, int32) {
		if strings.Contains(pod.Name, "-0-0-") {
			runs.Add(1)
		}
		return "", 1
	})
	l.runtime("restarting", func(s *jobset.JobSetSpec) {
		s.FailurePolicy = &jobset.FailurePolicy{MaxRestarts: 2}
		s.TTLSecondsAfterFinished = ptr.To(int32(0))
	})
	job := l.trainJob("failing", "restarting")
	if c := l.waitForJob(job, v1alpha1.ConditionFailed); c.Reason != jobset.ReasonReachedMaxRestarts {
		t.Errorf("the job ended with %+v", c)
	}
	l.eventually(func() string {
		err := l.client.Get(t.Context(), client.ObjectKeyFromObject(job), &jobset.JobSet{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("the end of the JobSet: %v", err)
	})
	l.get(job)
	if n := runs.Load(); n < 1 || n > 3 || !job.IsFinished() {
		t.Errorf("the first node ran %d times, want at most 3, and the job is %+v", n, job.Status)
	}
}

// TestTrainJobSuspended suspends a job, patches its runtime and lets it go on.
func TestTrainJobSuspended(t *testing.T) {
	l := newLab(t, forever)
	l.runtime("plain", nil)
	job := l.trainJob("resting", "plain", func(j *v1alpha1.TrainJob) { j.Spec.Suspend = ptr.To(true) })
	l.waitForJob(job, v1alpha1.ConditionSuspended)
	l.waitForPods(job, 0)
	l.update(job, func() {
		pod := &v1alpha1.PodSpecPatch{Tolerations: []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}}
		job.Spec.RuntimePatches = []v1alpha1.RuntimePatch{{Manager: "test.diwan.dev/manager", TrainingRuntimeSpec: &v1alpha1.TrainingRuntimeSpecPatch{
			Template: &v1alpha1.JobSetTemplatePatch{Spec: &v1alpha1.JobSetSpecPatch{ReplicatedJobs: []v1alpha1.ReplicatedJobPatch{{Name: "node",
				Template: &v1alpha1.JobTemplatePatch{Spec: &v1alpha1.JobSpecPatch{Template: &v1alpha1.PodTemplatePatch{Spec: pod}}}}}}}}}}
		job.Spec.Suspend = ptr.To(false)
	})
	l.waitForPods(job, 2)
	run := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "resting-node-0"}}
	l.get(run)
	if len(run.Spec.Template.Spec.Tolerations) != 1 || job.Spec.RuntimePatches[0].Time == nil {
		t.Errorf("the patch is %+v, and the Pods have the tolerations %+v", job.Spec.RuntimePatches, run.Spec.Template.Spec.Tolerations)
	}
	l.get(job)
	if c := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionSuspended); c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonResumed {
		t.Errorf("the job went on with %+v", job.Status)
	}
	l.update(job, func() { job.Spec.Suspend = ptr.To(true) })
	l.waitForPods(job, 0)
	l.eventually(func() string {
		l.get(job)
		job.Spec.Trainer.NumNodes = ptr.To(int32(3))
		err := l.client.Update(t.Context(), job)
		if apierrors.IsInvalid(err) && strings.Contains(err.Error(), "spec.trainer: Invalid value: field is immutable") {
			return ""
		}
		return fmt.Sprintf("a refusal of more nodes: %v", err)
	})
}

func TestTrainJobDeadline(t *testing.T) {
	l := newLab(t, forever)
	l.runtime("plain", nil)
	job := l.trainJob("late", "plain", func(j *v1alpha1.TrainJob) { j.Spec.ActiveDeadlineSeconds = 2 })
	if c := l.waitForJob(job, v1alpha1.ConditionFailed); c.Reason != v1alpha1.ReasonDeadlineExceeded {
		t.Errorf("the job ended with %+v", c)
	}
	l.waitForPods(job, 0)
}

func TestTrainJobRefused(t *testing.T) {
	l := newLab(t, forever)
	l.runtime("plain", nil)
	cases := []struct {
		reason, runtime, want string
		change                func(*v1alpha1.TrainJob)
	}{
		{"a runtime that is not there", "missing", "must be created before", func(*v1alpha1.TrainJob) {}},
		{"a runtime of another kind", "plain", "unsupported runtime", func(j *v1alpha1.TrainJob) { j.Spec.RuntimeRef.Kind = ptr.To("Pod") }},
		{"a variable of the framework", "plain", "PET_NNODES is a reserved env", func(j *v1alpha1.TrainJob) {
			j.Spec.Trainer.Env = []corev1.EnvVar{{Name: "PET_NNODES", Value: "7"}}
		}},
		{"data that the runtime does not fetch", "plain", "must have dataset-initializer job", func(j *v1alpha1.TrainJob) {
			j.Spec.Initializer = &v1alpha1.Initializer{Dataset: &v1alpha1.Asset{StorageURI: ptr.To("hf://a/b")}}
		}},
		{"a name that Pods cannot have", "plain", "JobSet name is too long", func(j *v1alpha1.TrainJob) { j.Name = strings.Repeat("n", 50) }},
		{"another's controller", "plain", "spec.managedBy: Unsupported value", func(j *v1alpha1.TrainJob) { j.Spec.ManagedBy = ptr.To("me.dev/me") }},
		{"a manager without a domain", "plain", "domain-prefixed path", func(j *v1alpha1.TrainJob) {
			j.Spec.RuntimePatches = []v1alpha1.RuntimePatch{{Manager: "me"}}
		}},
	}
	for _, c := range cases {
		if err := l.client.Create(t.Context(), l.newTrainJob("refused", c.runtime, c.change)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", c.reason, err, c.want)
		}
	}
}

// update changes an object until the change is taken.
func (l *lab) update(o client.Object, change func()) {
	l.t.Helper()
	l.eventually(func() string {
		l.get(o)
		change()
		if err := l.client.Update(l.t.Context(), o); err != nil {
			return err.Error()
		}
		return ""
	})
}

// TestOptimizationJob searches a parameter that TrainJobs find in a variable.
func TestOptimizationJob(t *testing.T) {
	const variable = "KUBEFLOW_TRAINER_OPT_RATE"
	l := newLab(t, func(_ context.Context, pod *corev1.Pod) (string, int32) {
		for _, e := range pod.Spec.Containers[0].Env {
			if e.Name == variable {
				return e.Value, 0
			}
		}
		return "", 1
	})
	l.runtime("plain", nil)
	job := &v1alpha1.OptimizationJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "search"},
		Spec: v1alpha1.OptimizationJobSpec{
			Objectives:      []v1alpha1.Objective{{Metric: "loss", Direction: v1alpha1.Maximize}},
			SearchAlgorithm: &v1alpha1.SearchAlgorithm{Grid: &v1alpha1.GridAlgorithm{}},
			Parameters: []v1alpha1.Parameter{{Name: "rate", SearchSpace: &v1alpha1.SearchSpace{
				Categorical: &v1alpha1.CategoricalSpace{Choices: []string{"3", "8", "5"}}}}},
			NumTrials: 3, ParallelTrials: 2,
			TrainJobTemplate: v1alpha1.TrainJobTemplateSpec{Spec: l.newTrainJob("", "plain", func(j *v1alpha1.TrainJob) { j.Spec.Trainer = nil }).Spec},
		},
	}
	if err := l.client.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	l.eventually(func() string {
		l.get(job)
		if job.Status != nil && meta.IsStatusConditionTrue(job.Status.Conditions, "Complete") {
			return ""
		}
		return fmt.Sprintf("the end in %+v", job.Status)
	})
	best := job.Status.Result
	if best == nil || len(best.Parameters) != 1 || best.Parameters[0].Value != "8" {
		t.Fatalf("the result is %+v", best)
	}
	winner := &v1alpha1.TrainJob{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: best.TrainJobName}}
	l.get(winner)
	if winner.Annotations["parameter.trainer.kubeflow.org/rate"] != "8" || !winner.IsFinished() {
		t.Errorf("the best TrainJob is %+v", winner)
	}
	wrong := job.DeepCopy()
	wrong.ObjectMeta = metav1.ObjectMeta{Namespace: l.namespace, Name: "wrong"}
	wrong.Spec.Parameters[0].SearchSpace = &v1alpha1.SearchSpace{Uniform: &v1alpha1.RangeSpace{Min: "2", Max: "1"}}
	wrong.Spec.ParallelTrials = 4
	err := l.client.Create(t.Context(), wrong)
	for _, want := range []string{"parallelTrials cannot exceed numTrials", "Grid search requires", "min must be strictly less than max"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a search that cannot be: %v, want %q in it", err, want)
		}
	}
	job.Spec.NumTrials = 9
	if err := l.client.Update(t.Context(), job); !apierrors.IsInvalid(err) {
		t.Errorf("more trials: %v", err)
	}
}
