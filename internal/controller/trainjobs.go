// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
	"diwan.dev/diwan/internal/controller/jobset"
	"diwan.dev/diwan/internal/controller/optimizationjob"
	"diwan.dev/diwan/internal/controller/report"
	"diwan.dev/diwan/internal/controller/trainjob"
)

// Kinds that can be left to other controllers, for Options.Without.
const (
	TrainJobs = "trainjobs"
	JobSets   = "jobsets"
)

// setupTrainJobs adds the reconcilers of TrainJobs and of what they are made of.
func setupTrainJobs(mgr manager.Manager, o Options) error {
	optional := []string{TrainJobs, JobSets}
	for _, job := range v1.Jobs() {
		optional = append(optional, job.Traits().Plural)
	}
	for _, name := range o.Without {
		if !slices.Contains(optional, name) {
			return fmt.Errorf("cannot leave %q to other controllers: only %s can be", name, strings.Join(optional, ", "))
		}
	}
	if !slices.Contains(o.Without, TrainJobs) {
		config := trainjob.DefaultConfig()
		config.StatusServer = o.StatusServer
		config.Events = report.NewEvents(mgr.GetEventRecorder(trainjob.Name))
		if err := trainjob.SetupWithManager(mgr, config); err != nil {
			return err
		}
		searches := optimizationjob.DefaultConfig()
		searches.Events = report.NewEvents(mgr.GetEventRecorder(optimizationjob.Name))
		if err := optimizationjob.SetupWithManager(mgr, searches); err != nil {
			return err
		}
	}
	if slices.Contains(o.Without, JobSets) {
		return nil
	}
	config := jobset.DefaultConfig()
	config.Events = report.NewEvents(mgr.GetEventRecorder(jobset.Name))
	return jobset.SetupWithManager(mgr, config)
}
