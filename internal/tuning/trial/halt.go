// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/trialtemplate"
)

// haltRetry is how often to look whether the Pods of a run object that is being
// ended are gone: its watch does not show them.
const haltRetry = time.Second

// stopField is a field of a run object that terminates its Pods but keeps the object.
type stopField struct {
	path  []string
	value any
}

// stopFields are those of the kinds that have one.
var stopFields = map[schema.GroupKind]stopField{
	{Group: "batch", Kind: "Job"}:                     {[]string{"spec", "suspend"}, true},
	{Group: "trainer.kubeflow.org", Kind: "TrainJob"}: {[]string{"spec", "suspend"}, true},
	{Group: "jobset.x-k8s.io", Kind: "JobSet"}:        {[]string{"spec", "suspend"}, true},
	{Group: "kubeflow.org", Kind: "TFJob"}:            {[]string{"spec", "runPolicy", "suspend"}, true},
	{Group: "kubeflow.org", Kind: "PyTorchJob"}:       {[]string{"spec", "runPolicy", "suspend"}, true},
	{Group: "kubeflow.org", Kind: "XGBoostJob"}:       {[]string{"spec", "runPolicy", "suspend"}, true},
	{Group: "kubeflow.org", Kind: "PaddleJob"}:        {[]string{"spec", "runPolicy", "suspend"}, true},
	{Group: "kubeflow.org", Kind: "JAXJob"}:           {[]string{"spec", "runPolicy", "suspend"}, true},
	{Group: "kubeflow.org", Kind: "MPIJob"}:           {[]string{"spec", "runPolicy", "suspend"}, true},
	{Group: "kubeflow.org", Kind: "MXJob"}:            {[]string{"spec", "runPolicy", "suspend"}, true},
	{Group: "argoproj.io", Kind: "Workflow"}:          {[]string{"spec", "shutdown"}, "Terminate"},
	{Group: "tekton.dev", Kind: "PipelineRun"}:        {[]string{"spec", "status"}, "Cancelled"},
}

// isSet reports whether the field of a run object is set.
func (b stopField) isSet(run client.Object) bool {
	switch run := run.(type) {
	case *batchv1.Job:
		return run.Spec.Suspend != nil && *run.Spec.Suspend
	case *unstructured.Unstructured:
		value, _, err := unstructured.NestedFieldNoCopy(run.Object, b.path...)
		return err == nil && value == b.value
	}
	return false
}

// resumable reports whether the run object can be resumed.
func (b stopField) resumable() bool { return b.value == true }

// stopAction is how a run is stopped or resumed.
type stopAction int

const (
	stopRun    stopAction = iota // stop the run permanently
	suspendRun                   // stop its Pods, and record that it was for the experiment
	resumeRun                    // let it continue
)

// patch returns the merge patch of a run object for an action.
func (b stopField) patch(run client.Object, how stopAction) (client.Patch, error) {
	metadata := map[string]any{"uid": string(run.GetUID())}
	value := b.value
	switch how {
	case suspendRun:
		metadata["annotations"] = map[string]any{v1beta1.AnnotationSuspended: "true"}
	case resumeRun:
		metadata["annotations"] = map[string]any{v1beta1.AnnotationSuspended: nil}
		value = false
	}
	change := map[string]any{"metadata": metadata}
	if err := unstructured.SetNestedField(change, value, b.path...); err != nil {
		return nil, fmt.Errorf("cannot make a patch: %w", err)
	}
	text, err := json.Marshal(change)
	if err != nil {
		return nil, fmt.Errorf("cannot make a patch: %w", err)
	}
	return client.RawPatch(types.MergePatchType, text), nil
}

// halt terminates everything that a run object runs, with its Pods' grace
// period, and reports whether it has ended. A run object that is to be
// retained and has a stop field stays; any other is deleted.
func (r *Reconciler) halt(ctx context.Context, t *v1beta1.Trial, kind schema.GroupVersionKind, run client.Object) (ended bool, err error) {
	field, can := stopFields[kind.GroupKind()]
	if run == nil || !can || !t.Spec.RetainRun || !owns(t, run) || run.GetDeletionTimestamp() != nil {
		return r.stop(ctx, t, kind)
	}
	if !field.isSet(run) {
		return false, r.setStopField(ctx, run, kind, field, stopRun)
	}
	return r.rests(ctx, t, run)
}

// setStopField sets the stop field of a run object.
func (r *Reconciler) setStopField(ctx context.Context, run client.Object, kind schema.GroupVersionKind, b stopField, how stopAction) error {
	patch, err := b.patch(run, how)
	if err != nil {
		return err
	}
	target := newRun(kind)
	target.SetNamespace(run.GetNamespace())
	target.SetName(run.GetName())
	if err := r.client.Patch(ctx, target, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot suspend or resume %s %s/%s: %w", kind.Kind, run.GetNamespace(), run.GetName(), err)
	}
	return nil
}

// rests reports whether a run object whose stopField is on has no Pod any more that
// runs. Others than Jobs do not count those that are ending.
func (r *Reconciler) rests(ctx context.Context, t *v1beta1.Trial, run client.Object) (bool, error) {
	if job, ok := run.(*batchv1.Job); ok {
		return jobRests(job), nil
	}
	outcome, err := evaluate(t, run)
	if err != nil || outcome.State == trialtemplate.Running && !isSuspended(run) {
		return false, err
	}
	var pods corev1.PodList
	if err := r.live.List(ctx, &pods, client.InNamespace(t.Namespace), client.MatchingLabels{v1beta1.LabelTrial: t.Name}); err != nil {
		return false, fmt.Errorf("cannot list the Pods of trial %s/%s: %w", t.Namespace, t.Name, err)
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			return false, nil
		}
	}
	return true, nil
}

// isSuspended reports whether a run object says of itself that it is suspended.
func isSuspended(run client.Object) bool {
	u, ok := run.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == string(batchv1.JobSuspended) && c["status"] == string(corev1.ConditionTrue) {
			return true
		}
	}
	return false
}

// jobRests reports whether a suspended Job has no Pod any more that runs.
func jobRests(job *batchv1.Job) bool {
	if job.Status.Active > 0 || (job.Status.Terminating != nil && *job.Status.Terminating > 0) {
		return false
	}
	for _, c := range job.Status.Conditions {
		switch c.Type {
		case batchv1.JobSuspended, batchv1.JobComplete, batchv1.JobFailed:
			if c.Status == corev1.ConditionTrue {
				return true
			}
		}
	}
	return false
}
