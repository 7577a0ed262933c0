// SPDX-License-Identifier: Apache-2.0

package training

import (
	jobsets "diwan.dev/diwan/api/jobset/v1alpha2"
	v1 "diwan.dev/diwan/api/kubeflow/v1"
	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/api/kubeflow/v2beta1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/platform/domain"
)

// Names by which kinds are left to another controller of the cluster. Those of the
// training operator's kinds are their plurals.
const (
	withoutTrainJobs = "trainjobs"
	withoutJobSets   = "jobsets"
)

// kinds are those that training reconciles.
func kinds() []domain.Kind {
	kinds := trainingJobs()
	return append(kinds,
		domain.Kind{
			GroupVersionKind: trainer.GroupVersion.WithKind(trainer.TrainJobKind), Plural: "trainjobs",
			Object: &trainer.TrainJob{}, Without: withoutTrainJobs, Users: domain.UsersEdit, Rules: ofTrainJobs(),
			Trial: &domain.Trial{
				SuccessCondition: v1beta1.QueryComplete, FailureCondition: v1beta1.QueryFailed,
				PrimaryPodLabels: map[string]string{"jobset.sigs.k8s.io/replicatedjob-name": "node", "batch.kubernetes.io/job-completion-index": "0"},
			},
			PodLabel: jobsets.LabelJobSetName,
		},
		domain.Kind{
			GroupVersionKind: trainer.GroupVersion.WithKind("TrainingRuntime"), Plural: "trainingruntimes",
			Object: &trainer.TrainingRuntime{}, Without: withoutTrainJobs, Users: domain.UsersEdit,
			Rules: []domain.Rule{domain.Allow(trainer.Group, read, "trainingruntimes")},
		},
		domain.Kind{
			GroupVersionKind: trainer.GroupVersion.WithKind(trainer.ClusterTrainingRuntimeKind), Plural: "clustertrainingruntimes",
			Object: &trainer.ClusterTrainingRuntime{}, Without: withoutTrainJobs,
			Rules: []domain.Rule{
				domain.Allow(trainer.Group, read, "clustertrainingruntimes"),
				domain.Allow(trainer.Group, []string{"create", "patch"}, "clustertrainingruntimes").If(".Values.runtimes.install"),
			},
		},
		domain.Kind{
			GroupVersionKind: jobsets.GroupVersion.WithKind("JobSet"), Plural: "jobsets",
			Object: &jobsets.JobSet{}, Without: withoutJobSets, Users: domain.UsersEdit,
			Rules: []domain.Rule{
				domain.Allow(jobsets.Group, []string{"update"}, "jobsets/status", "jobsets/finalizers"),
				domain.Allow("batch", []string{"update"}, "jobs", "jobs/status").Because("Jobs of a JobSet may go on after they were suspended."),
				domain.Allow("", []string{"get", "list", "watch", "create"}, "services"),
			},
			Trial:    &domain.Trial{},
			PodLabel: jobsets.LabelJobSetName,
		},
	)
}

// trainingJobs are the kinds of Kubeflow's training operator, and the later version
// of MPIJob, which has the same reconciler.
func trainingJobs() []domain.Kind {
	var kinds []domain.Kind
	for _, job := range v1.Jobs() {
		t := job.Traits()
		kind := domain.Kind{
			GroupVersionKind: v1.GroupVersion.WithKind(t.Kind), Plural: t.Plural, Object: job, Without: t.Plural, Users: domain.UsersEdit,
			Rules: ofTrainingJobs(t), PodLabel: v1.LabelJobName,
			Trial: &domain.Trial{
				SuccessCondition: v1beta1.QuerySucceeded, FailureCondition: v1beta1.QueryFailed,
				PrimaryPodLabels: map[string]string{v1.LabelJobRole: "master"},
			},
		}
		switch t.Framework {
		case "jax", "mxnet": // the first has no master, of the second it is a server, which learns nothing
			kind.Trial.PrimaryPodLabels = map[string]string{v1.LabelReplicaType: "worker", v1.LabelReplicaIndex: "0"}
		}
		kinds = append(kinds, kind)
		if t.Framework == "mpi" {
			kind.GroupVersionKind = v2beta1.GroupVersion.WithKind(t.Kind)
			kind.Trial = &domain.Trial{
				SuccessCondition: v1beta1.QuerySucceeded, FailureCondition: v1beta1.QueryFailed,
				PrimaryPodLabels: map[string]string{v1.LabelJobRole: "launcher"},
			}
			kinds = append(kinds, kind)
		}
	}
	return kinds
}
