// SPDX-License-Identifier: Apache-2.0

package trialkind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"diwan.dev/diwan/internal/algorithm"
)

// configKey is the key of the ConfigMap that holds the configuration.
const configKey = "katib-config.yaml"

// ErrNotPermitted is wrapped by the error about a kind that a run object may
// not have.
var ErrNotPermitted = errors.New("is not a kind that trials may have")

// Known returns the kinds that every trial may have: Jobs, and the training
// jobs of Kubeflow.
func Known() []schema.GroupVersionKind {
	kinds := []schema.GroupVersionKind{
		{Group: "batch", Version: "v1", Kind: "Job"},
		{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "TrainJob"},
		{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"},
		{Group: "kubeflow.org", Version: "v2beta1", Kind: "MPIJob"},
	}
	for _, kind := range []string{"TFJob", "PyTorchJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob", "MXJob"} {
		kinds = append(kinds, schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: kind})
	}
	return kinds
}

// Directory finds the kinds of a cluster.
type Directory struct {
	// Reader reads the ConfigMap, each time anew. Nil: only what is Known is
	// permitted.
	Reader client.Reader
	// Namespace is that of the ConfigMap. Default algorithm.DefaultNamespace.
	Namespace string
}

// Check returns nil for a kind that a run object may have, an error that wraps
// ErrNotPermitted for another, and any other error where that cannot be told.
func (d Directory) Check(ctx context.Context, kind schema.GroupVersionKind) error {
	known := Known()
	if slices.Contains(known, kind) {
		return nil
	}
	var more []schema.GroupVersionKind
	if d.Reader != nil {
		var m corev1.ConfigMap
		key := client.ObjectKey{Namespace: cmp.Or(d.Namespace, algorithm.DefaultNamespace), Name: algorithm.ConfigName}
		err := d.Reader.Get(ctx, key, &m)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot read ConfigMap %s: %w", key, err)
		}
		if more, err = Parse(m.Data[configKey]); err != nil {
			return err
		}
	}
	if slices.Contains(more, kind) {
		return nil
	}
	names := make([]string, 0, len(known)+len(more))
	for _, k := range slices.Concat(known, more) {
		names = append(names, Format(k))
	}
	return fmt.Errorf("%s %w: add it to init.controller.trialResources in %s of ConfigMap %s, which with what needs no entry has %s",
		Format(kind), ErrNotPermitted, configKey, algorithm.ConfigName, strings.Join(names, ", "))
}

// Parse reads the kinds that a KatibConfig names.
func Parse(text string) ([]schema.GroupVersionKind, error) {
	var config struct {
		Init struct {
			Controller struct {
				TrialResources []string `json:"trialResources"`
			} `json:"controller"`
		} `json:"init"`
	}
	where := configKey + " of ConfigMap " + algorithm.ConfigName
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", where, err)
	}
	kinds := make([]schema.GroupVersionKind, 0, len(config.Init.Controller.TrialResources))
	for i, entry := range config.Init.Controller.TrialResources {
		kind, _ := schema.ParseKindArg(entry)
		if kind == nil || kind.Kind == "" || kind.Version == "" {
			return nil, fmt.Errorf("cannot use %s: init.controller.trialResources[%d]: %q: want Kind.version.group, for example Workflow.v1alpha1.argoproj.io",
				where, i, entry)
		}
		kinds = append(kinds, *kind)
	}
	return kinds, nil
}

// Format writes a kind as a KatibConfig does: Kind.version.group.
func Format(kind schema.GroupVersionKind) string {
	return kind.Kind + "." + kind.Version + "." + kind.Group
}
