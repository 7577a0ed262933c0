// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"maps"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/trialtemplate"
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
	// Algorithms are those that experiments may name.
	Algorithms v1beta1.Algorithms
	// More, if set, adds those that are configured to be asked for elsewhere. It
	// is called for an experiment that names one that is not in Algorithms.
	More func(ctx context.Context, known v1beta1.Algorithms) (v1beta1.Algorithms, error)
	// ConfigMaps reads the trial templates that are in ConfigMaps. Experiments
	// with such a template are refused when it is nil.
	ConfigMaps trialtemplate.ConfigMaps
	// Ancestry finds the trial that a Pod belongs to. Nil: none do.
	Ancestry *Ancestry
	// Collect, if set, adds what collects a trial's metrics to a Pod of the trial
	// that is about to be created. An error says why the Pod cannot be. Nil: what
	// collects them is not in the Pod.
	Collect func(ctx context.Context, pod *corev1.Pod, trial *v1beta1.Trial) error
	// Reader reads the runtimes that TrainJobs name. TrainJobs need it.
	Reader client.Reader
}

// Handlers returns the handler of each path.
func Handlers(c Config) map[string]http.Handler {
	handler := func(f ctrladmission.HandlerFunc) http.Handler { return &ctrladmission.Webhook{Handler: f} }
	handlers := map[string]http.Handler{
		PathMutateExperiment:   handler(c.mutateExperiment),
		PathMutatePod:          handler(c.mutatePod),
		PathValidateExperiment: handler(c.validateExperiment),
		PathValidateTrial:      handler(validateTrial),
		PathValidateSuggestion: handler(validateSuggestion),
	}
	maps.Copy(handlers, trainingJobs())
	for path, f := range c.trainerHandlers() {
		handlers[path] = handler(f)
	}
	return handlers
}

func (c Config) mutateExperiment(_ context.Context, req ctrladmission.Request) ctrladmission.Response {
	e := &v1beta1.Experiment{}
	warnings, err := decode(req.Object.Raw, e)
	if isWrongType(err) {
		if mended, ok := mendCategorical(req.Object.Raw); ok {
			e = &v1beta1.Experiment{}
			warnings, err = decode(mended, e)
		}
	}
	if err != nil {
		return unreadable(err, field.NewPath("spec", "trialTemplate", "trialSpec"))
	}
	e.SetDefaults()
	return patched(req.Object.Raw, e).WithWarnings(warnings...)
}

func (c Config) validateExperiment(ctx context.Context, req ctrladmission.Request) ctrladmission.Response {
	e := &v1beta1.Experiment{}
	if _, err := decode(req.Object.Raw, e); err != nil {
		return unreadable(err, field.NewPath("spec", "trialTemplate", "trialSpec"))
	}
	var errs field.ErrorList
	if len(req.OldObject.Raw) > 0 {
		old := &v1beta1.Experiment{}
		if _, err := decode(req.OldObject.Raw, old); err != nil {
			return unreadable(err, field.NewPath("spec", "trialTemplate", "trialSpec"))
		}
		old.SetDefaults() // which one lacks that was created while no webhook was asked
		if equality.Semantic.DeepEqual(e.Spec, old.Spec) {
			return ctrladmission.Allowed("")
		}
		errs = e.ValidateUpdate(old)
	}
	known, err := c.known(ctx, &e.Spec)
	if err != nil {
		return ctrladmission.Errored(http.StatusInternalServerError, err)
	}
	errs = append(errs, e.Validate(known)...)
	if len(errs) == 0 {
		errs = trialtemplate.Validate(ctx, &e.Spec, c.ConfigMaps)
	}
	return decide(req, errs)
}

// known are the algorithms that an experiment may name.
func (c Config) known(ctx context.Context, spec *v1beta1.ExperimentSpec) (v1beta1.Algorithms, error) {
	all := true
	if spec.Algorithm != nil {
		_, all = c.Algorithms.Search[spec.Algorithm.AlgorithmName]
	}
	if all && spec.EarlyStopping != nil {
		_, all = c.Algorithms.EarlyStopping[spec.EarlyStopping.AlgorithmName]
	}
	if all || c.More == nil {
		return c.Algorithms, nil
	}
	return c.More(ctx, c.Algorithms)
}

// validateTrial keeps out trials that controllers could not read.
func validateTrial(_ context.Context, req ctrladmission.Request) ctrladmission.Response {
	t := &v1beta1.Trial{}
	if _, err := decode(req.Object.Raw, t); err != nil {
		return unreadable(err, field.NewPath("spec", "runSpec"))
	}
	var errs field.ErrorList
	if t.Spec.RunSpec == nil && t.Spec.External == nil {
		errs = append(errs, field.Required(field.NewPath("spec", "runSpec"), "the object that does the trial's work; experiments make trials, so create an Experiment instead"))
	}
	return decide(req, errs)
}

// validateSuggestion keeps out suggestions that controllers could not read.
func validateSuggestion(_ context.Context, req ctrladmission.Request) ctrladmission.Response {
	if _, err := decode(req.Object.Raw, &v1beta1.Suggestion{}); err != nil {
		return unreadable(err, nil)
	}
	return ctrladmission.Allowed("")
}
