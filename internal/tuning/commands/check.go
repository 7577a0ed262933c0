// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"cmp"
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/platform/cli/check"
	"diwan.dev/diwan/internal/tuning/optimizationjob"
	"diwan.dev/diwan/internal/tuning/trialtemplate"
)

// checked are the kinds of tuning whose Pods are those of their trials.
func checked() []check.Kind {
	return []check.Kind{
		{
			GroupVersionKind: kubeflow.GroupVersion.WithKind(kubeflow.ExperimentKind), Needs: templateOf,
			Pods: func(ctx context.Context, object *unstructured.Unstructured, found check.Found) ([]check.PodSet, error) {
				e := &kubeflow.Experiment{}
				if err := check.Convert(object, e); err != nil {
					return nil, err
				}
				return podsOfExperiment(ctx, e, found)
			},
		},
		{
			GroupVersionKind: trainer.GroupVersion.WithKind(trainer.OptimizationJobKind),
			Pods: func(ctx context.Context, object *unstructured.Unstructured, found check.Found) ([]check.PodSet, error) {
				job := &trainer.OptimizationJob{}
				if err := check.Convert(object, job); err != nil {
					return nil, err
				}
				e, err := optimizationjob.NewExperiment(job)
				if err != nil {
					return nil, err
				}
				return podsOfExperiment(ctx, e, found)
			},
		},
	}
}

// templateOf is the ConfigMap of an experiment's trial template, if it is in one.
func templateOf(e *unstructured.Unstructured) []check.Reference {
	name, _, _ := unstructured.NestedString(e.Object, "spec", "trialTemplate", "configMap", "configMapName")
	namespace, _, _ := unstructured.NestedString(e.Object, "spec", "trialTemplate", "configMap", "configMapNamespace")
	if name == "" {
		return nil
	}
	return []check.Reference{{Kind: "ConfigMap", Namespace: cmp.Or(namespace, e.GetNamespace()), Name: name}}
}

// podsOfExperiment are those of one trial, with the first value of each parameter.
func podsOfExperiment(ctx context.Context, e *kubeflow.Experiment, found check.Found) ([]check.PodSet, error) {
	if e.Spec.TrialTemplate == nil || e.Spec.NasConfig != nil {
		return nil, nil // programs that ask for trials run them, or an algorithm makes up the values
	}
	library := trialtemplate.Library{Reader: found}
	if source := e.Spec.TrialTemplate.ConfigMap; source != nil {
		library.Namespace = source.ConfigMapNamespace // the API server knows which namespace that may be
	}
	template, err := trialtemplate.Load(ctx, e.Namespace, &e.Spec, library)
	if err != nil {
		return nil, err
	}
	var values []kubeflow.ParameterAssignment
	for _, p := range e.Spec.Parameters {
		value := p.FeasibleSpace.Min
		if len(p.FeasibleSpace.List) > 0 {
			value = p.FeasibleSpace.List[0]
		}
		values = append(values, kubeflow.ParameterAssignment{Name: p.Name, Value: value})
	}
	run, err := template.Render("trial", e.Namespace, values)
	if err != nil {
		return nil, err
	}
	run.SetNamespace(e.Namespace)
	pods, err := found.PodsOf(ctx, run)
	for i := range pods {
		pods[i].Where = strings.TrimSpace("trial " + pods[i].Where)
	}
	return pods, err
}
