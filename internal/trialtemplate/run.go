// SPDX-License-Identifier: Apache-2.0

package trialtemplate

import (
	"fmt"
	"path"
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
// v1beta1.EnvTrialName, and a directory of metrics files lies on an emptyDir
// volume. That is all that the metrics collector needs.
func RunObject(trial *v1beta1.Trial) (*unstructured.Unstructured, error) {
	if trial.Spec.RunSpec == nil {
		return nil, fmt.Errorf("cannot make the run object of trial %s: spec.runSpec is empty", trial.Name)
	}
	run := trial.Spec.RunSpec.DeepCopy()
	run.SetName(trial.Name)
	run.SetNamespace(trial.Namespace)
	if !isBatchJob(run) {
		return run, nil
	}
	if err := stamp(run, trial); err != nil {
		return nil, fmt.Errorf("cannot make the Job of trial %s: %w", trial.Name, err)
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
	labels, err := child(template, "metadata", "labels")
	if err != nil {
		return err
	}
	primary := true
	for k, v := range trial.Spec.PrimaryPodLabels {
		primary = primary && labels[k] == v
	}
	for k, v := range trial.Labels {
		labels[k] = v
	}
	labels[v1beta1.LabelTrial] = trial.Name

	pod, err := child(template, "spec")
	if err != nil {
		return err
	}
	container, err := containerNamed(pod, trial.Spec.PrimaryContainerName)
	if err != nil {
		return err
	}
	setEnv(container, v1beta1.EnvTrialName, trial.Name)
	if dir := metricsDirectory(&trial.Spec.MetricsCollector); dir != "" && primary {
		mountMetrics(pod, container, dir)
	}
	return nil
}

// metricsDirectory is the directory of the files that hold metrics, "" when
// metrics do not come from files.
func metricsDirectory(c *v1beta1.MetricsCollectorSpec) string {
	if c.Collector == nil || c.Source == nil || c.Source.FileSystemPath == nil {
		return ""
	}
	file := c.Source.FileSystemPath
	switch c.Collector.Kind {
	case v1beta1.FileCollector:
		return path.Dir(file.Path)
	case v1beta1.TfEventCollector:
		return path.Clean(file.Path)
	case v1beta1.CustomCollector:
		if file.Kind == v1beta1.FileKind {
			return path.Dir(file.Path)
		}
		return path.Clean(file.Path)
	}
	return ""
}

// mountMetrics mounts an emptyDir at dir, unless something is mounted there.
func mountMetrics(pod, container map[string]any, dir string) {
	mounts, _ := container["volumeMounts"].([]any)
	for _, m := range mounts {
		m, _ := m.(map[string]any)
		if at, _ := m["mountPath"].(string); at != "" && path.Clean(at) == dir {
			return
		}
	}
	container["volumeMounts"] = append(mounts, map[string]any{"name": v1beta1.MetricsVolume, "mountPath": dir})
	volumes, _ := pod["volumes"].([]any)
	pod["volumes"] = append(volumes, map[string]any{"name": v1beta1.MetricsVolume, "emptyDir": map[string]any{}})
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
	return nil, fmt.Errorf("no container is named %q, as primaryContainerName says; there are: %s", name, strings.Join(names, ", "))
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
