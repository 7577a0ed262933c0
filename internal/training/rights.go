// SPDX-License-Identifier: Apache-2.0

package training

import (
	jobsets "diwan.dev/diwan/api/jobset/v1alpha2"
	v1 "diwan.dev/diwan/api/kubeflow/v1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/platform/domain"
)

// internal/diwan/manifest generates the chart's RBAC rules from these, and from the kinds
// that trials may run.

// read are the verbs of who only looks.
var read = []string{"get", "list", "watch"}

// ofTrainingJobs are the rights that the reconciler of a training operator's kind needs.
func ofTrainingJobs(t *v1.Traits) []domain.Rule {
	rules := []domain.Rule{
		domain.Allow(v1.Group, []string{"update"}, t.Plural+"/status", t.Plural+"/finalizers"),
		domain.Allow("", []string{"get", "list", "watch", "create", "delete"}, "pods").Because("The Pods of training jobs, the names by which these find each other, and their checkpoints."),
		domain.Allow("", []string{"get", "list", "watch", "create", "delete"}, "services"),
		domain.Allow("", read, "persistentvolumeclaims"),
	}
	if t.Framework == "pytorch" || t.Framework == "paddle" {
		rules = append(rules, domain.Allow("autoscaling", []string{"get", "list", "watch", "create", "update", "delete"}, "horizontalpodautoscalers").
			Because("Elastic training jobs with metrics."))
	}
	if t.Framework == "mpi" {
		all := []string{"get", "list", "watch", "create", "update"}
		rules = append(rules,
			domain.Allow("batch", []string{"patch"}, "jobs/status").
				Because("What the launcher of an MPIJob reads, and the account and keys by which it reaches its workers. Keys are made once; get tells whose those are that are there already."),
			domain.Allow("", all, "configmaps", "serviceaccounts"),
			domain.Allow("rbac.authorization.k8s.io", all, "roles", "rolebindings"),
			domain.Allow("", []string{"get", "create"}, "secrets"),
			domain.Allow("", []string{"create"}, "pods/exec").
				Because("The launcher of an MPIJob of v1 gets a role that lets it run commands in its own workers. Nobody can give what they do not have. "+
					"To let the operator bind a prepared role instead would narrow nothing: it could bind itself, and launchers would get into every Pod of their namespace."))
	}
	return rules
}

// ofTrainJobs are the rights that the reconciler of TrainJobs needs.
func ofTrainJobs() []domain.Rule {
	return []domain.Rule{
		domain.Allow(trainer.Group, []string{"update", "patch"}, "trainjobs/status"),
		domain.Allow(trainer.Group, []string{"update"}, "trainjobs/finalizers"),
		domain.Allow(jobsets.Group, []string{"update"}, "jobsets").Because("The JobSets that TrainJobs become."),
		domain.Allow("", []string{"get", "create"}, "configmaps", "secrets").
			Because("Snapshots of their runtimes and the keys of MPI, which are made once; get tells whose those are that are there already."),
		domain.Allow("", []string{"get"}, "persistentvolumeclaims"),
	}
}

// rules are the rights that no kind of training needs alone.
func rules() []domain.Rule {
	return []domain.Rule{
		domain.Allow("", []string{"create"}, "persistentvolumeclaims").Because("Checkpoints, and the volumes of JobSets."),
	}
}
