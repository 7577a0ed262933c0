// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/earlystopping"
	"diwan.dev/diwan/internal/searchspace"
	"diwan.dev/diwan/optimize"
)

// algorithms tells admission what the search library can do.
func algorithms() v1beta1.Algorithms {
	search := map[string]bool{}
	for _, algorithm := range optimize.Known() {
		search[algorithm.Name] = true
	}
	rules := map[string]bool{}
	for _, name := range earlystopping.Known() {
		rules[name] = true
	}
	return v1beta1.Algorithms{Search: search, EarlyStopping: rules, Check: searchspace.Check, CheckEarlyStopping: earlystopping.Check}
}

// readConfigMap reads trial templates, uncached: it is asked when an
// experiment is created, and a cache of all ConfigMaps would cost more.
func readConfigMap(reader client.Reader) func(ctx context.Context, namespace, name string) (map[string]string, error) {
	return func(ctx context.Context, namespace, name string) (map[string]string, error) {
		var m corev1.ConfigMap
		if err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &m); err != nil {
			return nil, fmt.Errorf("cannot read ConfigMap %s/%s: %w", namespace, name, err)
		}
		return m.Data, nil
	}
}
