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

	"diwan.dev/diwan/internal/tuning/algorithm"
)

// configKey is the key of the ConfigMap that holds the configuration.
const configKey = "katib-config.yaml"

// ErrNotPermitted is wrapped by the error about a kind that a run object may
// not have.
var ErrNotPermitted = errors.New("is not a kind that trials may use")

// Directory finds the kinds of a cluster.
type Directory struct {
	// Known are the kinds that every trial may have.
	Known []schema.GroupVersionKind
	// Reader reads the ConfigMap, each time anew. Nil: only what is Known is
	// permitted.
	Reader client.Reader
	// Namespace is the ConfigMap's namespace. Default
	// algorithm.DefaultNamespace.
	Namespace string
}

// Check returns nil for a kind that a run object may have, an error that wraps
// ErrNotPermitted for another, and any other error where that cannot be told.
func (d Directory) Check(ctx context.Context, kind schema.GroupVersionKind) error {
	if slices.Contains(d.Known, kind) {
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
		if privileged(kind.GroupKind()) {
			return fmt.Errorf("%s %w: the operator would create it with permissions that the experiment's author may not have", Format(kind), ErrNotPermitted)
		}
		return nil
	}
	names := make([]string, 0, len(d.Known)+len(more))
	for _, k := range slices.Concat(d.Known, more) {
		names = append(names, Format(k))
	}
	return fmt.Errorf("%s %w: add it to init.controller.trialResources in %s of ConfigMap %s; allowed kinds are %s",
		Format(kind), ErrNotPermitted, configKey, algorithm.ConfigName, strings.Join(names, ", "))
}

// privileged reports whether objects of a kind grant permissions, or change what
// the API server does for others.
func privileged(kind schema.GroupKind) bool {
	switch kind.Group {
	case "":
		return kind.Kind == "Secret" || kind.Kind == "ServiceAccount"
	case "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io",
		"authorization.k8s.io", "certificates.k8s.io", "rbac.authorization.k8s.io":
		return true
	}
	return false
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
		return nil, fmt.Errorf("cannot read %s: it is not a KatibConfig", where) // which users may not read
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
