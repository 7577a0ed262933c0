// SPDX-License-Identifier: Apache-2.0

// Package crd carries the CustomResourceDefinitions of this module's kinds.
// They are generated from the types under api; change them there and run
// `make generate`.
package crd

import (
	"embed"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var files embed.FS

// All returns every definition, in the order of their names. The caller owns
// the result.
func All() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("cannot list embedded definitions: %w", err)
	}
	all := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(entries))
	for _, e := range entries {
		text, err := files.ReadFile(e.Name())
		if err != nil {
			return nil, fmt.Errorf("cannot read embedded definition %s: %w", e.Name(), err)
		}
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, d); err != nil {
			return nil, fmt.Errorf("cannot decode embedded definition %s: %w", e.Name(), err)
		}
		all = append(all, d)
	}
	return all, nil
}
