// SPDX-License-Identifier: Apache-2.0

package commands

import (
	jobset "diwan.dev/diwan/api/jobset/v1alpha2"
	v1 "diwan.dev/diwan/api/kubeflow/v1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/platform/cli/podlog"
	"diwan.dev/diwan/internal/platform/domain"
)

// logged are the kinds of training that run Pods, of those of the domain: TrainJobs and JobSets, then the training operator's.
func logged(kinds []domain.Kind) []podlog.Kind {
	var sets, jobs []podlog.Kind
	for _, k := range kinds {
		if k.PodLabel == "" {
			continue
		}
		l := podlog.Kind{GroupVersionKind: k.GroupVersionKind, PodLabel: k.PodLabel, RoleLabel: jobset.LabelReplicatedJobName}
		switch object := k.Object.(type) {
		case v1.Job:
			l.RoleLabel, l.IndexLabel, l.Container = v1.LabelReplicaType, v1.LabelReplicaIndex, object.Traits().Container
			jobs = append(jobs, l)
			continue
		case *trainer.TrainJob:
			l.Container = trainer.Node
		}
		sets = append(sets, l)
	}
	return append(sets, jobs...)
}
