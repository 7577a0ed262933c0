// SPDX-License-Identifier: Apache-2.0

package admission

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Webhook declares when the API server calls a webhook, and its path.
type Webhook struct {
	// Name is unique and has at least three dot-separated parts. Required.
	Name string
	// Path is the path of the handler. Required; webhooks may share one.
	Path string
	// Mutating webhooks may change the object; others validate it.
	Mutating bool
	// Resource is the group, version and plural of the objects.
	Resource schema.GroupVersionResource
	// CreateOnly excludes updates.
	CreateOnly bool
	// NotByController excludes writes by this module's controllers.
	NotByController bool
	// Conditions are further match conditions, which the API server evaluates.
	Conditions []admissionregistrationv1.MatchCondition
	// Selector, if set, selects objects by their labels.
	Selector *metav1.LabelSelector
	// InNamespaces applies the Target's namespace selector.
	InNamespaces bool
	// Without is the name with which the kind is left to another controller, and this
	// webhook with it. "": never.
	Without string
	// When is a template condition under which the chart installs the webhook, such as
	// `.Values.collector.enabled`. "": always.
	When string
}

// Defaulter returns a mutating Webhook.
func Defaulter(name, path string, resource schema.GroupVersionResource) Webhook {
	return Webhook{Name: name, Path: path, Resource: resource, Mutating: true}
}

// Validator returns a validating Webhook.
func Validator(name, path string, resource schema.GroupVersionResource) Webhook {
	return Webhook{Name: name, Path: path, Resource: resource}
}
