// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
	"diwan.dev/diwan/api/kubeflow/v1beta1"
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
	// Namespaces are those whose Pods are asked about. Nil: all.
	Namespaces *metav1.LabelSelector
	// Controller is the user name of this module's controllers, whose trials
	// and suggestions are not asked about. Empty: all are asked about.
	Controller string
	// Collectors has the API server ask also about Pods that bear the name of a
	// trial, so that they get a collector of its metrics.
	Collectors bool
}

// Mutating returns the configuration for defaults.
func Mutating(t Target) *admissionregistrationv1.MutatingWebhookConfiguration {
	policy, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	c := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName},
		Webhooks: append(trainerMutating(t), admissionregistrationv1.MutatingWebhook{
			Name:                    "defaulter.experiment.katib.kubeflow.org",
			ClientConfig:            t.client(PathMutateExperiment),
			Rules:                   rules(v1beta1.Version, "experiments"),
			FailurePolicy:           &policy,
			SideEffects:             &none,
			AdmissionReviewVersions: []string{"v1"},
		}, admissionregistrationv1.MutatingWebhook{
			Name:                    "mutator.pod.katib.kubeflow.org",
			ClientConfig:            t.client(PathMutatePod),
			Rules:                   podRules(),
			FailurePolicy:           &policy,
			SideEffects:             &none,
			AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector:       t.Namespaces,
			MatchConditions:         mayBeTrials(),
		}),
	}
	if t.Collectors {
		of := c.Webhooks[len(c.Webhooks)-1].DeepCopy()
		of.Name, of.MatchConditions = "collector.pod.katib.kubeflow.org", nil
		of.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: v1beta1.LabelTrial, Operator: metav1.LabelSelectorOpExists},
		}}
		c.Webhooks = append(c.Webhooks, *of)
	}
	return c
}

// mayBeTrials asks only about Pods that something controls, which is not what
// the workloads of long life do, and that do not yet bear the name of a trial,
// as those of Jobs do from the start.
func mayBeTrials() []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{{
		Name:       "of-no-trial-yet",
		Expression: "!has(object.metadata.labels) || !(" + strconv.Quote(v1beta1.LabelTrial) + " in object.metadata.labels)",
	}, {
		Name: "controlled",
		Expression: "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, " +
			"has(o.controller) && o.controller && !o.apiVersion.startsWith('apps/') && o.kind != 'Node')",
	}}
}

func podRules() []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	}}
}

// Validating returns the configuration for checks.
func Validating(t Target) *admissionregistrationv1.ValidatingWebhookConfiguration {
	policy, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	hook := func(name, path, version, resource string, conditions []admissionregistrationv1.MatchCondition) admissionregistrationv1.ValidatingWebhook {
		return admissionregistrationv1.ValidatingWebhook{
			Name:                    name,
			ClientConfig:            t.client(path),
			Rules:                   rules(version, resource),
			FailurePolicy:           &policy,
			SideEffects:             &none,
			AdmissionReviewVersions: []string{"v1"},
			MatchConditions:         conditions,
		}
	}
	hooks := []admissionregistrationv1.ValidatingWebhook{
		hook("validator.experiment.katib.kubeflow.org", PathValidateExperiment, v1beta1.Version, "experiments", nil),
		hook("validator.trial.diwan.dev", PathValidateTrial, v1beta1.Version, "trials", t.notByController()),
		hook("validator.suggestion.diwan.dev", PathValidateSuggestion, v1beta1.Version, "suggestions", t.notByController()),
	}
	for _, job := range v1.Jobs() {
		kind := job.Traits()
		hooks = append(hooks, hook("validator."+strings.ToLower(kind.Kind)+".training-operator.kubeflow.org", pathValidateJob(kind.Kind), v1.Version, kind.Plural, nil))
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName},
		Webhooks:   append(hooks, trainerValidating(t)...),
	}
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

// notByController asks only about what others than the controllers write. The
// API server decides it by itself, so the controllers' writes cost nothing.
func (t Target) notByController() []admissionregistrationv1.MatchCondition {
	if t.Controller == "" {
		return nil
	}
	return []admissionregistrationv1.MatchCondition{{
		Name:       "not-by-controller",
		Expression: "request.userInfo.username != " + strconv.Quote(t.Controller),
	}}
}

func rules(version, resource string) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule: admissionregistrationv1.Rule{
			APIGroups:   []string{v1beta1.Group},
			APIVersions: []string{version},
			Resources:   []string{resource},
		},
	}}
}
