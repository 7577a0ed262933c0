// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

var experiments = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1beta1", Resource: "experiments"}

// experiment is one whose trials run command, in which ${trialParameters.x}
// is a number from 0 to 1.
func experiment(name string, trials, parallel int, command string) *unstructured.Unstructured {
	list := func(items ...any) []any { return items }
	type object = map[string]any
	return &unstructured.Unstructured{Object: object{
		"apiVersion": "kubeflow.org/v1beta1",
		"kind":       "Experiment",
		"metadata":   object{"name": name, "namespace": "default"},
		"spec": object{
			"objective":          object{"type": "minimize", "objectiveMetricName": "loss"},
			"algorithm":          object{"algorithmName": "random", "algorithmSettings": list(object{"name": "random_state", "value": "1"})},
			"parallelTrialCount": int64(parallel),
			"maxTrialCount":      int64(trials),
			"parameters": list(object{
				"name": "x", "parameterType": "double",
				"feasibleSpace": object{"min": "0", "max": "1"},
			}),
			"trialTemplate": object{
				"primaryContainerName": "main",
				"trialParameters":      list(object{"name": "x", "reference": "x"}),
				"trialSpec": object{
					"apiVersion": "batch/v1",
					"kind":       "Job",
					"spec": object{"template": object{"spec": object{
						"restartPolicy": "Never",
						"containers": list(object{
							"name": "main", "image": "diwan.dev/host",
							"command": list("sh", "-c", command),
						}),
					}}},
				},
			},
		},
	}}
}

// tune creates an experiment and returns how long it took to succeed. seen is
// shown the experiment, as often as it changes.
func (s *server) tune(ctx context.Context, e *unstructured.Unstructured, seen func(*unstructured.Unstructured) error) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	client := s.client.Resource(experiments).Namespace("default")
	watcher, err := client.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + e.GetName()})
	if err != nil {
		return 0, err
	}
	defer watcher.Stop()
	began := time.Now()
	if _, err := client.Create(ctx, e, metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Deleted {
			return 0, fmt.Errorf("the watch of %s ended: %v", e.GetName(), event.Object)
		}
		if seen != nil {
			if err := seen(object); err != nil {
				return 0, err
			}
		}
		switch {
		case hasCondition(object, "Succeeded"):
			return time.Since(began), nil
		case hasCondition(object, "Failed"):
			return 0, fmt.Errorf("experiment %s failed: %v", e.GetName(), object.Object["status"])
		}
	}
	return 0, fmt.Errorf("experiment %s did not end", e.GetName())
}

func hasCondition(object *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, item := range conditions {
		condition, ok := item.(map[string]any)
		if ok && condition["type"] == kind && condition["status"] == "True" {
			return true
		}
	}
	return false
}

// list returns all objects of one of our kinds.
func (s *server) list(ctx context.Context, resource string) (*unstructured.UnstructuredList, error) {
	return s.client.Resource(experiments.GroupVersion().WithResource(resource)).List(ctx, metav1.ListOptions{})
}
