// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
)

// SetWorkingDirectory annotates every Pod template of an object, at whatever depth, and a Pod
// itself, with the absolute directory where those of its containers start that name none and run
// as processes ([kubeflow.AnnotationWorkingDirectory]). It leaves alone what already carries the
// annotation. What counts as a Pod template is its shape, "template" with "spec.containers", so
// that kinds unknown here, such as training jobs, are annotated too.
func SetWorkingDirectory(object map[string]any, dir string) {
	set := func(pod map[string]any) { annotate(pod, dir) }
	eachPod(object, set, set)
}

// eachPod calls pod for an object that is a Pod and for each Pod template in it, and trainJob for
// each TrainJob and each template of one: their Pod templates are their runtime's.
func eachPod(object map[string]any, pod, trainJob func(map[string]any)) {
	if object["kind"] == "Pod" && isPod(object) {
		pod(object)
	}
	walk(object, pod, trainJob)
}

func walk(value any, pod, trainJob func(map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		if isTrainJob(value) {
			trainJob(value)
		}
		if template, ok := value["trainJobTemplate"].(map[string]any); ok {
			trainJob(template)
		}
		if template, ok := value["template"].(map[string]any); ok && isPod(template) {
			pod(template)
		}
		if trial, ok := value["trialSpec"].(map[string]any); ok && trial["kind"] == "Pod" && isPod(trial) {
			pod(trial)
		}
		for _, child := range value {
			walk(child, pod, trainJob)
		}
	case []any:
		for _, child := range value {
			walk(child, pod, trainJob)
		}
	}
}

// isTrainJob reports whether an object is a TrainJob, whose runtime has the Pod templates: its
// annotation becomes theirs.
func isTrainJob(object map[string]any) bool {
	return object["kind"] == trainer.TrainJobKind && object["apiVersion"] == trainer.GroupVersion.String()
}

// isPod reports whether an object has the shape of a Pod or a Pod template.
func isPod(object map[string]any) bool {
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		return false
	}
	_, ok = spec["containers"].([]any)
	return ok
}

// annotate sets the annotation unless there is one, or the metadata is malformed: the API server
// says so better.
func annotate(pod map[string]any, dir string) {
	metadata, ok := child(pod, "metadata")
	if !ok {
		return
	}
	annotations, ok := child(metadata, "annotations")
	if !ok {
		return
	}
	if _, set := annotations[kubeflow.AnnotationWorkingDirectory]; !set {
		annotations[kubeflow.AnnotationWorkingDirectory] = dir
	}
}

// child returns the object in a field, made if there is none; false if the field holds another type.
func child(object map[string]any, field string) (map[string]any, bool) {
	if object[field] == nil {
		object[field] = map[string]any{}
	}
	inner, ok := object[field].(map[string]any)
	return inner, ok
}
