// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/networking"
)

func TestWhyUnserved(t *testing.T) {
	t.Parallel()
	service := func(kind core.ServiceType) *core.Service { return &core.Service{Spec: core.ServiceSpec{Type: kind}} }
	for name, c := range map[string]struct {
		reason          string
		group, resource string
		object, old     runtime.Object
		want            string // in the warning; "" for none
	}{
		"network policy": {"nothing enforces it", "networking.k8s.io", "networkpolicies", &networking.NetworkPolicy{}, nil, "without restriction"},
		"changed policy": {"once is enough", "networking.k8s.io", "networkpolicies", &networking.NetworkPolicy{}, &networking.NetworkPolicy{}, ""},
		"ingress":        {"no controller runs", "networking.k8s.io", "ingresses", &networking.Ingress{}, nil, "port-forward"},
		"load balancer":  {"it stays pending", "", "services", service(core.ServiceTypeLoadBalancer), nil, "node port"},
		"becomes one":    {"as does one that was another type", "", "services", service(core.ServiceTypeLoadBalancer), service(core.ServiceTypeClusterIP), "node port"},
		"stays one":      {"that was told", "", "services", service(core.ServiceTypeLoadBalancer), service(core.ServiceTypeLoadBalancer), ""},
		"node port":      {"it works", "", "services", service(core.ServiceTypeNodePort), nil, ""},
		"other services": {"another group's kind is not Kubernetes' Service", "serving.example.com", "services", service(core.ServiceTypeLoadBalancer), nil, ""},
		"pod":            {"it works", "", "pods", &core.Pod{}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operation := admission.Create
			if c.old != nil {
				operation = admission.Update
			}
			a := admission.NewAttributesRecord(c.object, c.old, schema.GroupVersionKind{}, "ns", "x",
				schema.GroupVersionResource{Group: c.group, Version: "v1", Resource: c.resource}, "", operation, &metav1.CreateOptions{}, false, nil)
			if got := whyUnserved(a); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%s: warning %q, want %q", c.reason, got, c.want)
			}
		})
	}
}
