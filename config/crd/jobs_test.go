// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// TestJobsHaveARunPolicy has the API server fill in the run policy of a job
// without one: clients of the training operator's API cannot read it back else.
func TestJobsHaveARunPolicy(t *testing.T) {
	t.Parallel()
	definitions := all(t)
	for _, job := range v1.Jobs() {
		name := job.Traits().Plural + "." + v1.GroupVersion.Group
		structural, err := schema.NewStructural(schemaOf(t, definitions[name]))
		if err != nil {
			t.Fatal(err)
		}
		object := map[string]any{"spec": map[string]any{}}
		defaulting.Default(object, structural)
		policy, ok := object["spec"].(map[string]any)["runPolicy"].(map[string]any)
		if suspend, set := policy["suspend"].(bool); !ok || !set || suspend {
			t.Errorf("%s: a job without a run policy becomes %v, want one that is not suspended", name, object)
		}
	}
}
