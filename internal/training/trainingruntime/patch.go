// SPDX-License-Identifier: Apache-2.0

package trainingruntime

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/jobset/v1alpha2"
	"diwan.dev/diwan/api/trainer/v1alpha1"
)

// patch applies the job's patches to the template, in their order.
func (l *layout) patch() error {
	var order []string
	for _, r := range l.set.ReplicatedJobs {
		order = append(order, r.Name)
	}
	for i := range l.job.Spec.RuntimePatches {
		p := l.job.Spec.RuntimePatches[i].JobSet()
		if p.Metadata != nil {
			for k, v := range p.Metadata.Labels {
				l.labels = with(l.labels, k, v)
			}
			for k, v := range p.Metadata.Annotations {
				l.notes = with(l.notes, k, v)
			}
		}
		if p.Spec == nil {
			continue
		}
		var out v1alpha2.JobSetSpec
		if err := merge(l.set, p.Spec, &out); err != nil {
			return fmt.Errorf("cannot apply the patch of %s: %w", l.job.Spec.RuntimePatches[i].Manager, err)
		}
		l.set = out
	}
	slices.SortStableFunc(l.set.ReplicatedJobs, func(a, b v1alpha2.ReplicatedJob) int {
		return slices.Index(order, a.Name) - slices.Index(order, b.Name) // a merge puts patched ones first
	})
	return nil
}

// merge is a strategic merge patch of what has the type of out.
func merge[T any](base, over any, out *T) error {
	from, err := json.Marshal(base)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(over)
	if err != nil {
		return err
	}
	merged, err := strategicpatch.StrategicMergePatch(from, patch, *out)
	if err != nil {
		return err
	}
	return json.Unmarshal(merged, out)
}

// requirements are resources, whose claims are merged by name.
type requirements struct {
	Limits   corev1.ResourceList    `json:"limits,omitempty"`
	Requests corev1.ResourceList    `json:"requests,omitempty"`
	Claims   []corev1.ResourceClaim `json:"claims,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// resources sets the nodes' resources to the job's, overriding those of the
// runtime.
func (l *layout) resources() error {
	t := l.job.Spec.Trainer
	if t == nil || t.ResourcesPerNode == nil {
		return nil
	}
	nodes := []*v1alpha2.ReplicatedJob{l.ancestor(v1alpha1.AncestorTrainer)}
	if l.launcherIsNode() {
		nodes = append(nodes, l.replicatedJob(v1alpha1.Node))
	}
	for _, r := range slices.Compact(nodes) {
		if r == nil {
			continue
		}
		c := container(r, v1alpha1.Node)
		if c == nil {
			continue
		}
		var out requirements
		if err := merge(c.Resources, t.ResourcesPerNode, &out); err != nil {
			return fmt.Errorf("cannot apply spec.trainer.resourcesPerNode: %w", err)
		}
		c.Resources = corev1.ResourceRequirements{Limits: out.Limits, Requests: out.Requests, Claims: out.Claims}
	}
	return nil
}

// perNode are the resources of a node.
func (l *layout) perNode() corev1.ResourceRequirements {
	if c := l.node(); c != nil && (len(c.Resources.Requests) > 0 || len(c.Resources.Limits) > 0) {
		return c.Resources
	}
	if r := l.replicatedJob(v1alpha1.Node); r != nil {
		return ptr.Deref(container(r, v1alpha1.Node), corev1.Container{}).Resources
	}
	return corev1.ResourceRequirements{}
}
