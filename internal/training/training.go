// SPDX-License-Identifier: Apache-2.0

package training

import (
	"context"
	"errors"
	"net"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobsets "diwan.dev/diwan/api/jobset/v1alpha2"
	v1 "diwan.dev/diwan/api/kubeflow/v1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/platform/domain"
	"diwan.dev/diwan/internal/platform/reconciling"
	"diwan.dev/diwan/internal/training/admission"
	"diwan.dev/diwan/internal/training/jobset"
	"diwan.dev/diwan/internal/training/statusserver"
	"diwan.dev/diwan/internal/training/trainingjob"
	"diwan.dev/diwan/internal/training/trainjob"
)

// Name is the name of the domain.
const Name = "training"

// Options are what the domain needs from whoever runs it.
type Options struct {
	// GangScheduler is the gang scheduler for training jobs: kubernetes, volcano, or one
	// with the coscheduling plugin. Default: none.
	GangScheduler string
	// GangsByPolicy excludes jobs without a schedulingPolicy.
	GangsByPolicy bool
	// InitImage is the image of containers that wait for a PyTorchJob's master. Default:
	// that of the training operator.
	InitImage string
	// StatusServer is where the Pods of TrainJobs report progress. Default: none.
	StatusServer trainjob.StatusServer
	// InstallRuntimes installs the ClusterTrainingRuntimes, unless the operator runs
	// without TrainJobs. Default off.
	InstallRuntimes bool
}

// Domain returns the declaration of the domain.
func Domain(o Options) domain.Domain {
	return domain.Domain{
		Name:        Name,
		AddToScheme: AddToScheme,
		Kinds:       kinds(),
		Rules:       rules(),
		Webhooks:    admission.Webhooks(),
		Cache: map[client.Object]ctrlcache.ByObject{
			&corev1.Pod{}:     {Label: reconciling.HasLabel(v1.LabelJobName)},
			&corev1.Service{}: {Label: reconciling.HasLabel(v1.LabelJobName)},
		},
		SetUp: o.setUp,
	}
}

// AddToScheme registers the kinds of training.
func AddToScheme(scheme *runtime.Scheme) error {
	return errors.Join(v1.AddToScheme(scheme), trainer.AddToScheme(scheme), jobsets.AddToScheme(scheme))
}

func (o Options) setUp(h *domain.Host) error {
	for path, answer := range admission.Handlers(admission.Config{Known: h.WebhookClientsKnown, Reader: h.GetAPIReader()}) {
		h.Answer(path, answer)
	}
	if err := o.addTrainingJobs(h); err != nil {
		return err
	}
	if h.Runs(withoutTrainJobs) {
		if err := o.addTrainJobs(h); err != nil {
			return err
		}
	}
	o.addStatusServer(h)
	if !h.Runs(withoutJobSets) {
		return nil
	}
	sets := jobset.DefaultConfig()
	sets.Events = h.Events(jobset.Name)
	return jobset.SetupWithManager(h, sets)
}

// addTrainingJobs adds the reconcilers of the training operator's kinds.
func (o Options) addTrainingJobs(h *domain.Host) error {
	config := trainingjob.DefaultConfig()
	config.GangScheduler, config.GangsByPolicy, config.Without = o.GangScheduler, o.GangsByPolicy, h.Without
	config.InitImage, config.Events = o.InitImage, h.Events(trainingjob.Name)
	var err error
	if config.Metrics, err = trainingjob.NewMetrics(h.Registerer); err != nil {
		return err
	}
	return trainingjob.SetupWithManager(h, config)
}

// addTrainJobs adds the reconciler of TrainJobs and the installer of their runtimes.
func (o Options) addTrainJobs(h *domain.Host) error {
	config := trainjob.DefaultConfig()
	config.StatusServer = o.StatusServer
	config.Events = h.Events(trainjob.Name)
	if err := trainjob.SetupWithManager(h, config); err != nil {
		return err
	}
	if !o.InstallRuntimes {
		return nil
	}
	return h.Add(runtimeInstaller{h.GetClient()})
}

// addStatusServer registers the status server: with the webhook server and, on a laptop,
// at an address of its own.
func (o Options) addStatusServer(h *domain.Host) {
	if o.StatusServer.URL == "" {
		return
	}
	handler := statusserver.New(h.Direct)
	h.Handle(statusserver.Pattern, handler)
	h.Serve(domain.Server{
		Name: statusserver.PortName, Port: statusserver.Port, Host: statusserver.Host,
		Service: types.NamespacedName{Namespace: statusserver.Namespace, Name: statusserver.Service},
		Serve: func(ctx context.Context, listeners ...net.Listener) error {
			return statusserver.Serve(ctx, handler, listeners...)
		},
	})
}
