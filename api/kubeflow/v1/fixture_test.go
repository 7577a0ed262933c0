// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// read returns the job in a manifest, by its kind.
func read(t *testing.T, manifest string) v1.Job {
	t.Helper()
	var head struct{ Kind string }
	if err := yaml.Unmarshal([]byte(manifest), &head); err != nil {
		t.Fatal(err)
	}
	for _, job := range v1.Jobs() {
		if job.Traits().Kind == head.Kind {
			if err := yaml.UnmarshalStrict([]byte(manifest), job); err != nil {
				t.Fatal(err)
			}
			return job
		}
	}
	t.Fatalf("no kind %q", head.Kind)
	return nil
}
