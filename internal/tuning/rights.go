// SPDX-License-Identifier: Apache-2.0

package tuning

import (
	"diwan.dev/diwan/api/kubeflow/v1beta1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/platform/domain"
)

// internal/diwan/manifest generates the chart's RBAC rules from these, and from the kinds
// that trials may run.

// Verbs of rights.
var (
	read  = []string{"get", "list", "watch"}
	write = []string{"get", "list", "watch", "create", "update", "patch", "delete"}
)

// ofOwn are the rights on a kind of tuning's own.
func ofOwn(plural string) []domain.Rule {
	return []domain.Rule{
		domain.Allow(v1beta1.Group, write, plural),
		// update of finalizers is what makes an owner that blocks the deletion of what it owns.
		domain.Allow(v1beta1.Group, []string{"update", "patch"}, plural+"/status", plural+"/finalizers"),
	}
}

// ofOptimizationJobs are the rights that the reconciler of OptimizationJobs needs.
func ofOptimizationJobs() []domain.Rule {
	return []domain.Rule{
		domain.Allow(trainer.Group, read, "optimizationjobs"),
		domain.Allow(trainer.Group, []string{"update", "patch"}, "optimizationjobs/status"),
		domain.Allow(trainer.Group, []string{"update"}, "optimizationjobs/finalizers"),
	}
}

// rules are the rights that no kind of tuning needs alone.
func rules() []domain.Rule {
	const (
		services  = `include "diwan.services" .`
		volumes   = `include "diwan.serviceVolumes" .`
		stopping  = `or .Values.rbac.algorithmServices (include "diwan.stoppingServices" .)`
		collector = `.Values.collector.enabled`
	)
	return []domain.Rule{
		domain.Allow("apps", []string{"get", "list", "watch", "create", "delete"}, "deployments").Because("Services of algorithms that are not Diwan's.").If(services),
		domain.Allow("", []string{"get", "create", "delete"}, "services").If(services),
		domain.Allow("", []string{"create"}, "persistentvolumes").If(volumes),
		domain.Allow("", []string{"create"}, "serviceaccounts").
			Because("That of early stopping may write that a trial is stopped, which is why the operator must be able to read that.").If(stopping),
		domain.Allow("rbac.authorization.k8s.io", []string{"create"}, "roles", "rolebindings").If(stopping),
		domain.Allow(v1beta1.Group, []string{"get"}, "trials/status").If(stopping),
		domain.Allow("", []string{"get"}, "secrets", "serviceaccounts").Because("The pull secrets of trials' Pods, to ask registries what an image runs.").If(collector),
		domain.Allow("", []string{"get"}, "configmaps").Because("Trial templates in ConfigMaps of the experiments' namespaces, and katib-config."),
		domain.Allow("", read, "pods").Because("Whose address a Pod's is that reports metrics; the way from a Pod up to its trial."),
		domain.Allow("", []string{"create"}, "persistentvolumeclaims").Because("The checkpoints of population based training, and what algorithm services keep."),
		domain.Allow("", read, "resourcequotas").Because("When a quota has room again for trials that were held back."),
	}
}
