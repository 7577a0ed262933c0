// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"diwan.dev/diwan/internal/platform/admission"
)

func TestConfigurations(t *testing.T) {
	t.Parallel()
	things := schema.GroupVersionResource{Group: "g", Version: "v", Resource: "things"}
	checked := admission.Validator("check.things.g", "/check", things)
	checked.NotByController = true
	pods := admission.Defaulter("mutate.pods.g", "/mutate", schema.GroupVersionResource{Version: "v1", Resource: "pods"})
	pods.InNamespaces, pods.CreateOnly = true, true
	webhooks := []admission.Webhook{checked, admission.Defaulter("default.things.g", "/default", things), pods}

	selected := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	local := admission.Target{URL: "https://127.0.0.1:9443", CABundle: []byte("ca"), Controller: `o"p`, Namespaces: selected}
	cluster := admission.Target{Service: &admissionregistrationv1.ServiceReference{Namespace: "diwan", Name: "operator"}}

	mutating, validating := admission.Mutating(local, webhooks), admission.Validating(local, webhooks)
	if len(mutating.Webhooks) != 2 || len(validating.Webhooks) != 1 {
		t.Fatalf("there are %d mutating and %d validating webhooks, want 2 and 1", len(mutating.Webhooks), len(validating.Webhooks))
	}
	if url := mutating.Webhooks[0].ClientConfig.URL; url == nil || *url != "https://127.0.0.1:9443/default" || mutating.Webhooks[0].ClientConfig.Service != nil {
		t.Errorf("the client configuration is %+v", mutating.Webhooks[0].ClientConfig)
	}
	if of := mutating.Webhooks[0]; of.NamespaceSelector != nil || len(of.Rules[0].Operations) != 2 {
		t.Errorf("a webhook that does not ask for it is bound to %v, with %v", of.NamespaceSelector, of.Rules)
	}
	if of := mutating.Webhooks[1]; of.NamespaceSelector != selected || len(of.Rules[0].Operations) != 1 {
		t.Errorf("a webhook in namespaces, of creations, is bound to %v, with %v", of.NamespaceSelector, of.Rules)
	}
	if c := validating.Webhooks[0].MatchConditions; len(c) != 1 || c[0].Expression != `request.userInfo.username != "o\"p"` {
		t.Errorf("the match conditions are %+v", c)
	}
	validating = admission.Validating(cluster, webhooks)
	if c := validating.Webhooks[0].MatchConditions; c != nil {
		t.Errorf("without a controller all must be asked about: %+v", c)
	}
	if c := validating.Webhooks[0].ClientConfig; c.URL != nil || c.Service == nil || *c.Service.Path != "/check" {
		t.Errorf("the client configuration is %+v", c)
	}
	if cluster.Service.Path != nil {
		t.Error("the target's Service was changed")
	}
}
