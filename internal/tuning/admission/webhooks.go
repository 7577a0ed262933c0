// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/admission"
	"diwan.dev/diwan/internal/tuning/trialtemplate"
)

// Paths on which the API server asks. Those for experiments
// and Pods are Katib's.
const (
	PathMutateExperiment   = "/mutate-experiment"
	PathMutatePod          = "/mutate-pod"
	PathValidateExperiment = "/validate-experiment"
	PathValidateTrial      = "/validate-trial"
	PathValidateSuggestion = "/validate-suggestion"
)

// Config is what the answers depend on.
type Config struct {
	// Known says that who asks is known to be the API server. Otherwise anyone may
	// ask, in any name, so the answers rely on nothing that only some may read: what
	// a namespace holds is checked later, when it is used, and Pods are told apart
	// by the UIDs of their owners, which only who may read the owners knows.
	Known bool
	// Algorithms are those that experiments may name.
	Algorithms v1beta1.Algorithms
	// More, if set, adds those that are configured to be asked for elsewhere. It
	// is called for an experiment that names one that is not in Algorithms.
	More func(ctx context.Context, known v1beta1.Algorithms) (v1beta1.Algorithms, error)
	// Runs are the kinds that trials run.
	Runs Runs
	// Templates are the trial templates that are in ConfigMaps. They are read only
	// for who is Known.
	Templates trialtemplate.Library
	// Ancestry finds the trial that a Pod belongs to. Nil: none do.
	Ancestry *Ancestry
	// Collect, if set, adds what collects a trial's metrics to a Pod of the trial
	// that is about to be created. An error says why the Pod cannot be. Nil: what
	// collects them is not in the Pod.
	Collect func(ctx context.Context, pod *corev1.Pod, trial *v1beta1.Trial) error
}

// Handlers returns the handler of each path.
func Handlers(c Config) map[string]ctrladmission.HandlerFunc {
	return map[string]ctrladmission.HandlerFunc{
		PathMutateExperiment:   c.mutateExperiment,
		PathMutatePod:          c.mutatePod,
		PathValidateExperiment: c.validateExperiment,
		PathValidateTrial:      validateTrial,
		PathValidateSuggestion: validateSuggestion,
	}
}

// Webhooks says when the API server asks. collectors has it ask also about Pods
// that bear the name of a trial from the start, so that they get a collector.
func Webhooks(collectors bool) []admission.Webhook {
	kind := v1beta1.GroupVersion.WithResource
	trials := admission.Validator("validator.trial.diwan.dev", PathValidateTrial, kind("trials"))
	suggestions := admission.Validator("validator.suggestion.diwan.dev", PathValidateSuggestion, kind("suggestions"))
	trials.NotByController, suggestions.NotByController = true, true

	pods := admission.Defaulter("mutator.pod.katib.kubeflow.org", PathMutatePod, schema.GroupVersionResource{Version: "v1", Resource: "pods"})
	pods.CreateOnly, pods.InNamespaces, pods.Conditions = true, true, mayBeTrials()
	webhooks := []admission.Webhook{
		admission.Defaulter("defaulter.experiment.katib.kubeflow.org", PathMutateExperiment, kind("experiments")),
		pods,
		admission.Validator("validator.experiment.katib.kubeflow.org", PathValidateExperiment, kind("experiments")),
		trials,
		suggestions,
	}
	if collectors {
		collector := pods
		collector.Name, collector.Conditions, collector.When = "collector.pod.katib.kubeflow.org", nil, ".Values.collector.enabled"
		collector.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: v1beta1.LabelTrial, Operator: metav1.LabelSelectorOpExists},
		}}
		webhooks = append(webhooks, collector)
	}
	return webhooks
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
