// SPDX-License-Identifier: Apache-2.0

package trialtemplate

import (
	"fmt"
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// prepareCollection gives a Pod what collecting the trial's metrics needs: the
// directory of the files that hold them, and the user's own collector.
func prepareCollection(pod, container map[string]any, trial *v1beta1.Trial) error {
	spec := &trial.Spec.MetricsCollector
	var mount map[string]any
	if dir := metricsDirectory(spec); dir != "" {
		mount = mountMetrics(pod, container, dir)
	}
	if c := spec.Collector; c != nil && c.Kind == v1beta1.CustomCollector && c.CustomCollector != nil {
		return addCollector(pod, trial, mount)
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

// mountMetrics mounts an emptyDir at dir, unless something is mounted there, and
// returns the mount.
func mountMetrics(pod, container map[string]any, dir string) (mount map[string]any) {
	if there := mountedAt(container, dir); there != nil {
		return there
	}
	mount = map[string]any{"name": v1beta1.MetricsVolume, "mountPath": dir}
	add(container, "volumeMounts", mount)
	add(pod, "volumes", map[string]any{"name": v1beta1.MetricsVolume, "emptyDir": map[string]any{}})
	return mount
}

// mountedAt returns a container's mount at a directory, nil if none.
func mountedAt(container map[string]any, dir string) map[string]any {
	mounts, _ := container["volumeMounts"].([]any)
	for _, m := range mounts {
		m, _ := m.(map[string]any)
		if at, _ := m["mountPath"].(string); at != "" && path.Clean(at) == dir {
			return m
		}
	}
	return nil
}

// add appends to a list of an object.
func add(object map[string]any, key string, item map[string]any) {
	list, _ := object[key].([]any)
	object[key] = append(list, item)
}

// collectorPatience is how many seconds a custom collector may continue after
// the trial's program has exited, before it gets SIGTERM.
const collectorPatience = 5

// addCollector adds the custom collector as a sidecar, with the same metrics
// directory: it cannot delay the end of the Pod. It sees the Pod's processes, if
// the node separates those of Pods.
func addCollector(pod map[string]any, trial *v1beta1.Trial, mount map[string]any) error {
	custom := trial.Spec.MetricsCollector.Collector.CustomCollector.DeepCopy()
	custom.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	patience := int64(collectorPatience)
	if grace, ok := pod["terminationGracePeriodSeconds"].(int64); ok {
		patience = min(patience, grace) // the API server wants no more
	}
	if custom.Lifecycle == nil {
		custom.Lifecycle = &corev1.Lifecycle{}
	}
	if custom.Lifecycle.PreStop == nil && patience > 0 {
		custom.Lifecycle.PreStop = &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: patience}}
	}
	collector, err := runtime.DefaultUnstructuredConverter.ToUnstructured(custom)
	if err != nil {
		return fmt.Errorf("cannot read metricsCollectorSpec.collector.customCollector: %w", err)
	}
	setEnv(collector, v1beta1.EnvTrialName, trial.Name)
	if at, _ := mount["mountPath"].(string); mount != nil && mountedAt(collector, path.Clean(at)) == nil {
		add(collector, "volumeMounts", runtime.DeepCopyJSON(mount))
	}
	add(pod, "initContainers", collector)
	if pod["shareProcessNamespace"] == nil && pod["hostPID"] != true {
		pod["shareProcessNamespace"] = true
	}
	return nil
}
