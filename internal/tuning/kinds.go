// SPDX-License-Identifier: Apache-2.0

package tuning

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/platform/domain"
)

// withoutTrainJobs is the name by which TrainJobs are left to another controller:
// what searches by TrainJobs is Kubeflow Trainer's then, too.
const withoutTrainJobs = "trainjobs"

// kinds are those that tuning reconciles, and Jobs, which every trial may run.
func kinds() []domain.Kind {
	own := func(kind, plural string, object domain.Kind) domain.Kind {
		object.GroupVersionKind, object.Plural, object.Users = v1beta1.GroupVersion.WithKind(kind), plural, domain.UsersEditWithStatus
		object.Rules = ofOwn(plural)
		return object
	}
	return []domain.Kind{
		own(v1beta1.ExperimentKind, "experiments", domain.Kind{Object: &v1beta1.Experiment{}, PodLabel: v1beta1.LabelExperiment}),
		own("Suggestion", "suggestions", domain.Kind{Object: &v1beta1.Suggestion{}}),
		own(v1beta1.TrialKind, "trials", domain.Kind{Object: &v1beta1.Trial{}, PodLabel: v1beta1.LabelTrial}),
		{
			GroupVersionKind: trainer.GroupVersion.WithKind(trainer.OptimizationJobKind), Plural: "optimizationjobs",
			Object: &trainer.OptimizationJob{}, Without: withoutTrainJobs, Users: domain.UsersEdit,
			Rules: ofOptimizationJobs(),
		},
		{
			GroupVersionKind: schema.GroupVersionKind{Group: batchv1.GroupName, Version: "v1", Kind: "Job"}, Plural: "jobs",
			Object: &batchv1.Job{},
			Trial:  &domain.Trial{SuccessCondition: v1beta1.QueryComplete, FailureCondition: v1beta1.QueryFailed},
		},
	}
}
