// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// ConfigurationName is the name of both webhook configurations, as Katib's, so
// that on a cluster these replace it.
const ConfigurationName = "katib.kubeflow.org"

// Target is where the API server finds the handlers: at a URL or at a Service,
// exactly one of the two.
type Target struct {
	// URL is the address without a path, for example https://127.0.0.1:9443.
	URL string
	// Service is the Service that leads to the handlers; its path is not used.
	Service *admissionregistrationv1.ServiceReference
	// CABundle is the PEM certificate that vouches for the handlers' server.
	CABundle []byte
	// Namespaces selects the namespaces of webhooks with InNamespaces. Nil: all.
	Namespaces *metav1.LabelSelector
	// Controller is the user name of this module's controllers. Empty: NotByController
	// has no effect.
	Controller string
}

// Mutating returns the configuration of the mutating webhooks.
func Mutating(t Target, webhooks []Webhook) *admissionregistrationv1.MutatingWebhookConfiguration {
	c := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName},
	}
	for _, w := range webhooks {
		if w.Mutating {
			c.Webhooks = append(c.Webhooks, admissionregistrationv1.MutatingWebhook{
				Name: w.Name, ClientConfig: t.client(w.Path), Rules: w.rules(), MatchConditions: t.conditions(w),
				NamespaceSelector: t.namespaces(w), ObjectSelector: w.Selector,
				FailurePolicy: ptr.To(admissionregistrationv1.Fail), SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
				AdmissionReviewVersions: []string{"v1"},
			})
		}
	}
	return c
}

// Validating returns the configuration of the validating webhooks.
func Validating(t Target, webhooks []Webhook) *admissionregistrationv1.ValidatingWebhookConfiguration {
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName},
	}
	for _, w := range webhooks {
		if !w.Mutating {
			c.Webhooks = append(c.Webhooks, admissionregistrationv1.ValidatingWebhook{
				Name: w.Name, ClientConfig: t.client(w.Path), Rules: w.rules(), MatchConditions: t.conditions(w),
				NamespaceSelector: t.namespaces(w), ObjectSelector: w.Selector,
				FailurePolicy: ptr.To(admissionregistrationv1.Fail), SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
				AdmissionReviewVersions: []string{"v1"},
			})
		}
	}
	return c
}

func (t Target) client(path string) admissionregistrationv1.WebhookClientConfig {
	c := admissionregistrationv1.WebhookClientConfig{CABundle: t.CABundle}
	if t.Service != nil {
		c.Service = t.Service.DeepCopy()
		c.Service.Path = &path
		return c
	}
	url := t.URL + path
	c.URL = &url
	return c
}

// conditions returns a webhook's own match conditions and the one that excludes the
// controllers' writes. The API server evaluates them, so excluded writes cost nothing.
func (t Target) conditions(w Webhook) []admissionregistrationv1.MatchCondition {
	conditions := slices.Clone(w.Conditions)
	if w.NotByController && t.Controller != "" {
		conditions = append(conditions, admissionregistrationv1.MatchCondition{
			Name:       "not-by-controller",
			Expression: "request.userInfo.username != " + strconv.Quote(t.Controller),
		})
	}
	return conditions
}

func (t Target) namespaces(w Webhook) *metav1.LabelSelector {
	if !w.InNamespaces {
		return nil
	}
	return t.Namespaces
}

func (w Webhook) rules() []admissionregistrationv1.RuleWithOperations {
	operations := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	if w.CreateOnly {
		operations = operations[:1]
	}
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: operations,
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{w.Resource.Group}, APIVersions: []string{w.Resource.Version}, Resources: []string{w.Resource.Resource}},
	}}
}
