// SPDX-License-Identifier: Apache-2.0

// Package controller runs the reconcilers of Experiments, Suggestions and
// Trials in a controller-runtime manager.
//
//	Experiment ──asks──▶ Suggestion     how many assignments are wanted
//	Suggestion ──answers─▶ Experiment   the assignments
//	Experiment ──creates─▶ Trials       one of each assignment
//	Trial      ──creates─▶ run object   and reports how it went
//
// Each reconciler reads a cache, decides by a pure function, and writes; each
// object's status has one writer. Everything that is kept in memory can be
// built again from the API and the observation store, so that the process may
// be killed at any instruction. None of the reconcilers knows where it runs.
package controller

import (
	"context"
	"fmt"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	jobsets "diwan.dev/diwan/api/jobset/v1alpha2"
	v1 "diwan.dev/diwan/api/kubeflow/v1"
	"diwan.dev/diwan/api/kubeflow/v1beta1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/algorithm"
	"diwan.dev/diwan/internal/controller/deadnode"
	"diwan.dev/diwan/internal/controller/experiment"
	"diwan.dev/diwan/internal/controller/report"
	"diwan.dev/diwan/internal/controller/suggestion"
	"diwan.dev/diwan/internal/controller/trainingjob"
	"diwan.dev/diwan/internal/controller/trainjob"
	"diwan.dev/diwan/internal/controller/trial"
	"diwan.dev/diwan/internal/earlystopping"
	"diwan.dev/diwan/internal/trialkind"
	"diwan.dev/diwan/observation"
)

// Options are what the reconcilers need from whoever runs them.
type Options struct {
	// Store holds what trials report. Required. Where it is an
	// [observation.Announcer], trials are stopped early the sooner. It stays the caller's, and
	// must be open until the manager has stopped.
	Store observation.Store
	// Namespace is that of ConfigMap katib-config and Service katib-db-manager.
	// Default algorithm.DefaultNamespace.
	Namespace string
	// Stopping knows the learning curves by which trials are stopped early.
	// Default: one of its own.
	Stopping *earlystopping.History
	// Dial connects to the algorithm services of users. Default: as any
	// program does.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Without names kinds for which the cluster has controllers of its own:
	// trainjobs, jobsets, and those of the training operator. Default: none.
	Without []string
	// GangScheduler is the scheduler that places the Pods of training jobs all
	// or none. Default: none.
	GangScheduler string
	// GangsByPolicy leaves jobs without a schedulingPolicy out of that.
	GangsByPolicy bool
	// StatusServer is where the Pods of TrainJobs tell how far they are. Default:
	// none.
	StatusServer trainjob.StatusServer
	// Registerer takes the Prometheus metrics. Default: controller-runtime's.
	Registerer prometheus.Registerer
}

// NewScheme returns a scheme with the kinds of Kubernetes and of tuning.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("cannot add the kinds of Kubernetes: %w", err)
	}
	if err := v1beta1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("cannot add the kinds of tuning: %w", err)
	}
	if err := v1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("cannot add the kinds of training: %w", err)
	}
	for _, add := range []func(*runtime.Scheme) error{trainer.AddToScheme, jobsets.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("cannot add the kinds of TrainJobs: %w", err)
		}
	}
	return scheme, nil
}

// CacheOptions are those of the manager's cache: of Jobs only those of trials,
// of Pods and Services only those of training jobs, of Deployments only those of
// algorithm services, and of every object only
// what is read. Objects from such a cache must not be written back whole.
func CacheOptions() (cache.Options, error) {
	ofTrials, err := labels.NewRequirement(v1beta1.LabelTrial, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("cannot select the Jobs of trials: %w", err)
	}
	ofJobs, err := labels.NewRequirement(v1.LabelJobName, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("cannot select the Pods of training jobs: %w", err)
	}
	ofServices, err := labels.NewRequirement(v1beta1.LabelDeployment, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("cannot select the Deployments of algorithm services: %w", err)
	}
	return cache.Options{
		DefaultTransform: trial.Slim,
		ByObject: map[client.Object]cache.ByObject{
			&batchv1.Job{}:       {Label: labels.NewSelector().Add(*ofTrials)},
			&corev1.Pod{}:        {Label: labels.NewSelector().Add(*ofJobs)},
			&corev1.Service{}:    {Label: labels.NewSelector().Add(*ofJobs)},
			&appsv1.Deployment{}: {Label: labels.NewSelector().Add(*ofServices)},
			&corev1.Node{}:       {Transform: deadnode.Slim},
		},
	}, nil
}

// Setup adds the reconcilers to a manager, whose scheme and cache are those of
// NewScheme and CacheOptions.
func Setup(mgr manager.Manager, o Options) error {
	if o.Store == nil {
		return fmt.Errorf("cannot set up the controllers: Options.Store is missing")
	}
	if o.Registerer == nil {
		o.Registerer = metrics.Registry
	}
	counters, err := report.NewMetrics(o.Registerer, mgr.GetCache())
	if err != nil {
		return err
	}
	ofExperiments := experiment.DefaultConfig()
	ofExperiments.Metrics, ofExperiments.Events = counters, report.NewEvents(mgr.GetEventRecorder(experiment.Name))
	if err := experiment.SetupWithManager(mgr, ofExperiments); err != nil {
		return err
	}
	stopping := o.Stopping
	if stopping == nil {
		stopping = earlystopping.NewHistory(o.Store, mgr.GetCache())
	}
	ofSuggestions := suggestion.DefaultConfig()
	ofSuggestions.Stopping = stopping
	ofSuggestions.Services = algorithm.Directory{Reader: mgr.GetAPIReader(), Namespace: o.Namespace}
	ofSuggestions.Client.Dial = o.Dial
	ofSuggestions.Events = report.NewEvents(mgr.GetEventRecorder(suggestion.Name))
	if err := suggestion.SetupWithManager(mgr, ofSuggestions); err != nil {
		return err
	}
	ofTrials := trial.DefaultConfig()
	ofTrials.Stopping = stopping
	ofTrials.Store, ofTrials.Metrics, ofTrials.Events = o.Store, counters, report.NewEvents(mgr.GetEventRecorder(trial.Name))
	ofTrials.Kinds = trialkind.Directory{Reader: mgr.GetAPIReader(), Namespace: o.Namespace}
	if err := trial.SetupWithManager(mgr, ofTrials); err != nil {
		return err
	}
	if err := setupTrainingJobs(mgr, o); err != nil {
		return err
	}
	if err := setupTrainJobs(mgr, o); err != nil {
		return err
	}
	ofNodes := deadnode.DefaultConfig()
	ofNodes.Events = report.NewEvents(mgr.GetEventRecorder(deadnode.Name))
	return deadnode.SetupWithManager(mgr, ofNodes)
}

// setupTrainingJobs adds the reconcilers of training jobs to a manager.
func setupTrainingJobs(mgr manager.Manager, o Options) error {
	config := trainingjob.DefaultConfig()
	config.GangScheduler, config.GangsByPolicy, config.Without = o.GangScheduler, o.GangsByPolicy, o.Without
	config.Events = report.NewEvents(mgr.GetEventRecorder(trainingjob.Name))
	var err error
	if config.Metrics, err = trainingjob.NewMetrics(o.Registerer); err != nil {
		return err
	}
	return trainingjob.SetupWithManager(mgr, config)
}
