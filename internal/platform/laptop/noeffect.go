// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/apis/core"
)

// unservedName is the admission plugin's name in kube-apiserver's list.
const unservedName = "DiwanUnserved"

// unserved is an admission plugin that warns of objects that are accepted, as
// manifests for clusters have them, and that nothing here acts on. A
// ValidatingAdmissionPolicy with the action Warn would say "validation failed".
type unserved struct{}

var _ admission.ValidationInterface = unserved{}

func newUnserved(io.Reader) (admission.Interface, error) { return unserved{}, nil }

// Handles implements admission.Interface.
func (unserved) Handles(operation admission.Operation) bool {
	return operation == admission.Create || operation == admission.Update
}

// Validate implements admission.ValidationInterface. It refuses nothing.
func (unserved) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	if why := whyUnserved(a); why != "" {
		warning.AddWarning(ctx, "", fmt.Sprintf("%s %q %s", a.GetKind().Kind, a.GetName(), why))
	}
	return nil
}

// whyUnserved says what an object lacks on a laptop, "" if nothing, or if its
// creation has told it already.
func whyUnserved(a admission.Attributes) string {
	created := a.GetOperation() == admission.Create
	switch resource := a.GetResource(); {
	case resource.Group == "networking.k8s.io" && resource.Resource == "networkpolicies" && created:
		return "has no effect on this machine: Pods reach each other and the network without restriction"
	case resource.Group == "networking.k8s.io" && resource.Resource == "ingresses" && created:
		return "has no effect on this machine: no ingress controller runs here; use kubectl port-forward, or a Service of type NodePort"
	case resource.Group == "" && resource.Resource == "services" && balanced(a.GetObject()) && !balanced(a.GetOldObject()):
		return "gets no external address: there is no load balancer on this machine; use kubectl port-forward, or its node port on 127.0.0.1"
	}
	return ""
}

// balanced tells whether an object is a Service that asks for a load balancer.
func balanced(object any) bool {
	service, ok := object.(*core.Service)
	return ok && service != nil && service.Spec.Type == core.ServiceTypeLoadBalancer
}
