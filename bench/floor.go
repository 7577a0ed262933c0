// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"diwan.dev/diwan/internal/testing/hollow"
)

// Hollow nodes, and how many Pods each takes.
const (
	floorNodes = 20
	nodePods   = 110
)

// floor is a server with hollow nodes, which this process serves.
type floor struct {
	*server
	kube kubernetes.Interface
}

// newFloor starts both, the server with arguments.
func newFloor(ctx context.Context, arguments ...string) (*floor, func(), error) {
	s, end, err := newServer(ctx, arguments...)
	if err != nil {
		return nil, nil, err
	}
	kube, err := kubernetes.NewForConfig(s.config)
	if err != nil {
		end()
		return nil, nil, err
	}
	stop, err := hollow.Start(ctx, hollow.Config{Client: kube, Name: "floor", Count: floorNodes, Workers: 16, Capacity: corev1.ResourceList{
		"cpu": resource.MustParse("100"), "memory": resource.MustParse("1Ti"), "pods": resource.MustParse(fmt.Sprint(nodePods)),
	}})
	if err != nil {
		end()
		return nil, nil, err
	}
	return &floor{s, kube}, func() {
		stop()
		end()
	}, nil
}

// requests counts those that the API server has answered, by what they did, but
// for those that keep the cluster itself going.
func (f *floor) requests(ctx context.Context) (map[string]float64, error) {
	m, err := f.readMetrics(ctx)
	if err != nil {
		return nil, err
	}
	counts := map[string]float64{}
	for kind, n := range m.requests {
		if kind.resource != "leases" && kind.resource != "nodes" {
			counts[kind.String()] = n
		}
	}
	return counts, nil
}

// names are those that count at least a little, in order.
func names(counts ...map[string]float64) []string {
	all := map[string]bool{}
	for _, c := range counts {
		for name, n := range c {
			if n >= 0.05 {
				all[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func resourceOf(kind string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: strings.ToLower(kind) + "s"}
}

// trainingJob is a job of so many replicas, one of them its chief, for the
// hollow nodes, perhaps a gang.
func trainingJob(kind, name string, replicas int, gang bool) *unstructured.Unstructured {
	type object = map[string]any
	field, chief, container := "pytorchReplicaSpecs", "Master", "pytorch"
	if kind == "TFJob" {
		field, chief, container = "tfReplicaSpecs", "Chief", "tensorflow"
	}
	replica := func(n int) object {
		return object{"replicas": int64(n), "restartPolicy": "OnFailure", "template": object{"spec": object{
			"nodeSelector": object{hollow.Label: "floor"},
			"containers":   []any{object{"name": container, "image": "diwan.dev/host", "command": []any{"train"}, "resources": object{"requests": object{"cpu": "100m"}}}},
		}}}
	}
	run := object{}
	if gang {
		run["schedulingPolicy"] = object{}
	}
	return &unstructured.Unstructured{Object: object{
		"apiVersion": "kubeflow.org/v1", "kind": kind,
		"metadata": object{"name": name, "namespace": "default"},
		"spec":     object{"runPolicy": run, field: object{chief: replica(1), "Worker": replica(replicas - 1)}},
	}}
}
