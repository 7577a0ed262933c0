// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"

	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
)

// SetWorkingDirectory annotates every Pod template of an object, at whatever depth, and a Pod
// itself, with the absolute directory where those of its containers start that name none and run
// as processes ([kubeflow.AnnotationWorkingDirectory]). It leaves alone what already carries the
// annotation. What counts as a Pod template is its shape, "template" with "spec.containers", so
// that kinds unknown here, such as training jobs, are annotated too.
func SetWorkingDirectory(object map[string]any, dir string) {
	t := templatesIn(object)
	for _, template := range slices.Concat(t.pods, t.trainJobs) {
		annotate(template, dir)
	}
}

// templates are parts of an object.
type templates struct {
	// pods are Pod templates, and the object itself if it is a Pod.
	pods []map[string]any
	// trainJobs are TrainJobs and templates of them: their Pod templates are their runtime's.
	trainJobs []map[string]any
}

func templatesIn(object map[string]any) *templates {
	t := &templates{}
	if object["kind"] == "Pod" && isPod(object) {
		t.pods = append(t.pods, object)
	}
	t.walk(object)
	return t
}

func (t *templates) walk(value any) {
	switch value := value.(type) {
	case map[string]any:
		if isTrainJob(value) {
			t.trainJobs = append(t.trainJobs, value)
		}
		if template, ok := value["trainJobTemplate"].(map[string]any); ok {
			t.trainJobs = append(t.trainJobs, template)
		}
		if template, ok := value["template"].(map[string]any); ok && isPod(template) {
			t.pods = append(t.pods, template)
		}
		if trial, ok := value["trialSpec"].(map[string]any); ok && trial["kind"] == "Pod" && isPod(trial) {
			t.pods = append(t.pods, trial)
		}
		for _, child := range value {
			t.walk(child)
		}
	case []any:
		for _, child := range value {
			t.walk(child)
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
