// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
)

// TestVersionsOfMPIJob holds that the API server marks an MPIJob that is written
// as v2beta1, and no other: by the mark it is known when it is stored as v1.
func TestVersionsOfMPIJob(t *testing.T) {
	t.Parallel()
	definition := internal(t, all(t)["mpijobs.kubeflow.org"])
	marks := map[string]any{}
	for _, v := range definition.Spec.Versions {
		structural, err := schema.NewStructural(v.Schema.OpenAPIV3Schema)
		if err != nil {
			t.Fatal(err)
		}
		object := map[string]any{"spec": map[string]any{}}
		defaulting.Default(object, structural)
		marks[v.Name] = object["spec"].(map[string]any)["mpiImplementation"]
		if v.Storage != (v.Name == "v1") || !v.Served {
			t.Errorf("%s is served: %v, stored: %v", v.Name, v.Served, v.Storage)
		}
	}
	if len(marks) != 2 || marks["v1"] != nil || marks["v2beta1"] != "OpenMPI" {
		t.Errorf("a new job names the implementation %v", marks)
	}
}
