// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/platform/cli/podlog"
)

// logged are the kinds of tuning whose logs are those of a trial's Pods. The Experiment of an
// OptimizationJob has the same name.
func logged() []podlog.Kind {
	return []podlog.Kind{
		{GroupVersionKind: kubeflow.GroupVersion.WithKind(kubeflow.TrialKind), PodLabel: kubeflow.LabelTrial, Source: sourceOfTrial},
		{GroupVersionKind: kubeflow.GroupVersion.WithKind(kubeflow.ExperimentKind), Source: sourceOfSearch(kubeflow.ExperimentKind)},
		{GroupVersionKind: trainer.GroupVersion.WithKind(trainer.OptimizationJobKind), Source: sourceOfSearch(trainer.OptimizationJobKind)},
	}
}

func sourceOfTrial(ctx context.Context, reader client.Reader, name types.NamespacedName, _ bool) (*podlog.Source, error) {
	trial := &kubeflow.Trial{}
	if err := reader.Get(ctx, name, trial); err != nil {
		return nil, fmt.Errorf("cannot read trial %s: %w", name.Name, err)
	}
	return podsOfTrial(trial, ""), nil
}

// sourceOfSearch chooses one trial of an object of a kind.
func sourceOfSearch(kind string) func(context.Context, client.Reader, types.NamespacedName, bool) (*podlog.Source, error) {
	return func(ctx context.Context, reader client.Reader, name types.NamespacedName, following bool) (*podlog.Source, error) {
		object := strings.ToLower(kind) + "/" + name.Name
		experiment, trials := &kubeflow.Experiment{}, &kubeflow.TrialList{}
		if err := reader.Get(ctx, name, experiment); err != nil {
			return nil, fmt.Errorf("cannot read experiment %s: %w", name.Name, err)
		}
		if err := reader.List(ctx, trials, client.InNamespace(name.Namespace), client.MatchingLabels{kubeflow.LabelExperiment: name.Name}); err != nil {
			return nil, fmt.Errorf("cannot list the trials of %s: %w", object, err)
		}
		trial, which := chooseTrial(experiment.Status.CurrentOptimalTrial.BestTrialName, trials.Items, following)
		if trial == nil {
			return nil, fmt.Errorf("cannot find a log of %s: it has no trial yet", object)
		}
		return podsOfTrial(trial, fmt.Sprintf("trial %s of %s: %s of %d", trial.Name, object, which, len(trials.Items))), nil
	}
}

func podsOfTrial(trial *kubeflow.Trial, why string) *podlog.Source {
	return &podlog.Source{
		Object: "trial/" + trial.Name, Name: trial.Name, Label: kubeflow.LabelTrial,
		Primary: trial.Spec.PrimaryPodLabels, Container: trial.Spec.PrimaryContainerName, Why: why,
	}
}

// chooseTrial returns the trial of an experiment that is asked for, and why it is that one: the best,
// or while it is followed, or none is best, the newest that has begun. It is nil without any.
func chooseTrial(best string, trials []kubeflow.Trial, follow bool) (trial *kubeflow.Trial, why string) {
	trials = slices.Clone(trials)
	slices.SortFunc(trials, func(a, b kubeflow.Trial) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	running := slices.IndexFunc(trials, func(t kubeflow.Trial) bool { return t.Status.Conditions.IsTrue(kubeflow.ConditionRunning) })
	at := slices.IndexFunc(trials, func(t kubeflow.Trial) bool { return t.Name == best })
	switch {
	case follow && running >= 0:
		return &trials[running], "the newest running trial"
	case at >= 0:
		return &trials[at], "the best"
	case running >= 0:
		return &trials[running], "the newest running trial; none is best yet"
	case len(trials) > 0:
		return &trials[0], "the newest trial; none is best yet"
	}
	return nil, ""
}
