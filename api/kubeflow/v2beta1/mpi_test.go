// SPDX-License-Identifier: Apache-2.0

package v2beta1_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
	"diwan.dev/diwan/api/kubeflow/v2beta1"
)

// TestSameFields holds what the conversion by name alone relies on: both versions
// have the same fields of the same types.
func TestSameFields(t *testing.T) {
	t.Parallel()
	fields := func(of any) map[string]reflect.Type {
		out := map[string]reflect.Type{}
		for _, f := range reflect.VisibleFields(reflect.TypeOf(of)) {
			out[f.Tag.Get("json")] = f.Type
		}
		return out
	}
	same := cmp.Comparer(func(a, b reflect.Type) bool { return a == b })
	if diff := cmp.Diff(fields(v1.MPIJobSpec{}), fields(v2beta1.MPIJobSpec{}), same); diff != "" {
		t.Errorf("the fields of v1 and v2beta1 (-v1 +v2beta1)\n%s", diff)
	}
	if reflect.TypeOf(v1.MPIJob{}.Status) != reflect.TypeOf(v2beta1.MPIJob{}.Status) {
		t.Error("the versions have different states")
	}
}
