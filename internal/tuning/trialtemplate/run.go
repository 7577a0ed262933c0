// SPDX-License-Identifier: Apache-2.0

package trialtemplate

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// RunObject returns the object that does a trial's work, ready to be created
// but for its owner: a copy of spec.runSpec under the trial's name.
//
// When it is a batch Job, its Pods carry the trial's labels and the label
// v1beta1.LabelTrial, its primary container has the environment variable
// v1beta1.EnvTrialName, a directory of metrics files lies on an emptyDir volume,
// and a collector of the user's runs beside it. That is all that collecting
// metrics needs. The Pods of other kinds get the same from AdoptPod.
func RunObject(trial *v1beta1.Trial) (*unstructured.Unstructured, error) {
	if trial.Spec.RunSpec == nil {
		return nil, fmt.Errorf("cannot create the run object of trial %s: spec.runSpec is empty", trial.Name)
	}
	run := trial.Spec.RunSpec.DeepCopy()
	run.SetName(trial.Name)
	run.SetNamespace(trial.Namespace)
	if !isBatchJob(run) {
		return run, nil
	}
	if err := stamp(run, trial); err != nil {
		return nil, fmt.Errorf("cannot create the Job of trial %s: %w", trial.Name, err)
	}
	return run, nil
}

func isBatchJob(object *unstructured.Unstructured) bool {
	return object.GetKind() == "Job" && object.GetAPIVersion() == batchv1.SchemeGroupVersion.String()
}

// stamp marks a Job's Pods as the trial's.
func stamp(job *unstructured.Unstructured, trial *v1beta1.Trial) error {
	template, err := child(job.Object, "spec", "template")
	if err != nil {
		return err
	}
	primary, err := label(template, trial)
	if err != nil {
		return err
	}
	pod, err := child(template, "spec")
	if err != nil {
		return err
	}
	container, err := containerNamed(pod, trial.Spec.PrimaryContainerName)
	if err != nil {
		return err
	}
	setEnv(container, v1beta1.EnvTrialName, trial.Name)
	if !primary {
		return nil
	}
	return prepareCollection(pod, container, trial)
}

// AdoptPod marks a Pod that is about to be created as one of a trial's, as
// RunObject marks those of a Job: for run objects of other kinds, whose Pods
// nobody has seen before. It reports whether the Pod is one whose metrics count
// and lacks the primary container, which no metrics can come from.
func AdoptPod(pod *unstructured.Unstructured, trial *v1beta1.Trial) (lacks bool, err error) {
	primary, err := label(pod.Object, trial)
	if err != nil {
		return false, fmt.Errorf("cannot add the Pod to trial %s: %w", trial.Name, err)
	}
	spec, err := child(pod.Object, "spec")
	if err != nil {
		return false, fmt.Errorf("cannot add the Pod to trial %s: %w", trial.Name, err)
	}
	container, err := containerNamed(spec, trial.Spec.PrimaryContainerName)
	if err != nil {
		return primary, nil
	}
	setEnv(container, v1beta1.EnvTrialName, trial.Name)
	if !primary {
		return false, nil
	}
	return false, prepareCollection(spec, container, trial)
}

// label gives a Pod, or a template of Pods, the trial's labels, and reports
// whether its own are those of the Pods whose metrics count.
func label(pod map[string]any, trial *v1beta1.Trial) (primary bool, err error) {
	labels, err := child(pod, "metadata", "labels")
	if err != nil {
		return false, err
	}
	primary = true
	for k, v := range trial.Spec.PrimaryPodLabels {
		primary = primary && labels[k] == v
	}
	for k, v := range trial.Labels {
		labels[k] = v
	}
	labels[v1beta1.LabelTrial] = trial.Name
	return primary, nil
}

// setEnv gives a container an environment variable, in place of one of the
// same name.
func setEnv(container map[string]any, name, value string) {
	set := map[string]any{"name": name, "value": value}
	env, _ := container["env"].([]any)
	for i, e := range env {
		if e, _ := e.(map[string]any); e["name"] == name {
			env[i] = set
			return
		}
	}
	container["env"] = append(env, set)
}

func containerNamed(pod map[string]any, name string) (map[string]any, error) {
	containers, _ := pod["containers"].([]any)
	names := make([]string, 0, len(containers))
	for _, c := range containers {
		c, _ := c.(map[string]any)
		if c["name"] == name {
			return c, nil
		}
		n, _ := c["name"].(string)
		names = append(names, n)
	}
	return nil, fmt.Errorf("there is no container %q, as in primaryContainerName; the containers are: %s", name, strings.Join(names, ", "))
}

// child returns the object under the keys, which it makes where it is missing.
func child(object map[string]any, keys ...string) (map[string]any, error) {
	for i, k := range keys {
		next, ok := object[k].(map[string]any)
		if !ok && object[k] != nil {
			return nil, fmt.Errorf("%s is not an object", strings.Join(keys[:i+1], "."))
		}
		if next == nil {
			next = map[string]any{}
			object[k] = next
		}
		object = next
	}
	return object, nil
}
