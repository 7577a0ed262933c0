// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/handler3"
)

func TestListed(t *testing.T) {
	t.Parallel()
	lists := []*metav1.APIResourceList{nil, {GroupVersion: "tuning/v1", APIResources: []metav1.APIResource{{Name: "trials"}, {Name: "trials/status"}}}}
	for _, tc := range []struct {
		reason string
		wanted map[string][]string
		want   bool
	}{
		{"nothing is wanted", nil, true},
		{"it is there", map[string][]string{"tuning/v1": {"trials"}}, true},
		{"one of two is missing", map[string][]string{"tuning/v1": {"trials", "experiments"}}, false},
		{"it is there in another version", map[string][]string{"tuning/v2": {"trials"}}, false},
	} {
		if got := listed(lists, tc.wanted); got != tc.want {
			t.Errorf("%s: got %t", tc.reason, got)
		}
	}
}

func TestDescribes(t *testing.T) {
	t.Parallel()
	paths := func(names ...string) map[string]handler3.OpenAPIV3DiscoveryGroupVersion {
		all := map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}
		for _, name := range names {
			all[name] = handler3.OpenAPIV3DiscoveryGroupVersion{}
		}
		return all
	}
	definition := func(established apiextensionsv1.ConditionStatus) []*apiextensionsv1.CustomResourceDefinition {
		return []*apiextensionsv1.CustomResourceDefinition{{
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: "tuning", Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true}, {Name: "v0"}}},
			Status: apiextensionsv1.CustomResourceDefinitionStatus{Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
				{Type: apiextensionsv1.Established, Status: established},
			}},
		}}
	}
	for _, tc := range []struct {
		reason      string
		paths       map[string]handler3.OpenAPIV3DiscoveryGroupVersion
		definitions []*apiextensionsv1.CustomResourceDefinition
		want        bool
	}{
		{"the built-in kinds are missing", paths("apis/tuning/v1"), definition(apiextensionsv1.ConditionTrue), false},
		{"a version that is served is missing", paths("api/v1"), definition(apiextensionsv1.ConditionTrue), false},
		{"a definition that is not established is not waited for", paths("api/v1"), definition(apiextensionsv1.ConditionFalse), true},
		{"all are there", paths("api/v1", "apis/tuning/v1"), definition(apiextensionsv1.ConditionTrue), true},
	} {
		if got := describes(tc.paths, tc.definitions); got != tc.want {
			t.Errorf("%s: got %t", tc.reason, got)
		}
	}
}
