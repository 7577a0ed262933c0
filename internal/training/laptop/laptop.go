// SPDX-License-Identifier: Apache-2.0

// Package laptop is what training adds to a laptop: the runtimes that TrainJobs name,
// the images of its helpers, and ssh between the Pods of MPI jobs.
package laptop

import (
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/config/runtimes"
	"diwan.dev/diwan/internal/platform/laptop"
	"diwan.dev/diwan/internal/platform/node"
	"diwan.dev/diwan/internal/platform/node/image"
	"diwan.dev/diwan/internal/training"
	"diwan.dev/diwan/internal/training/podssh/nodedecorator"
	"diwan.dev/diwan/internal/training/statusserver"
	"diwan.dev/diwan/internal/training/trainjob"
)

// New returns the wing. gangScheduler makes all training jobs gangs, placed by that
// scheduler; "" those that have a schedulingPolicy, placed by the laptop's own.
func New(lent *laptop.Lent, gangScheduler string) (laptop.Wing, error) {
	options := training.Options{
		GangScheduler: gangScheduler,
		InitImage:     image.Host, // nothing is pulled for jobs of the machine's own programs
		StatusServer: trainjob.StatusServer{
			URL:         "https://" + net.JoinHostPort(statusserver.Host, strconv.Itoa(statusserver.Port)),
			Authorities: func() ([]byte, error) { return lent.Authority, nil },
		},
	}
	if gangScheduler == "" {
		options.GangScheduler, options.GangsByPolicy = corev1.DefaultSchedulerName, true
	}
	objects, err := objects()
	if err != nil {
		return laptop.Wing{}, err
	}
	domain := training.Domain(options)
	return laptop.Wing{Name: training.Name, Domain: &domain, Objects: objects, Images: Images(), Decorators: Decorators()}, nil
}

// Images are those for which this binary stands: kubectl for launchers of MPIJobs of
// v1, and what fetches data and models for TrainJobs; and those of the runtimes that a
// laptop installs, for which the user's own frameworks stand.
func Images() []image.Entry {
	images := []image.Entry{
		image.BuiltIn("kubectl-delivery", "deliver-kubectl"),
		image.BuiltIn("*/kubectl-delivery", "deliver-kubectl"),
		image.BuiltIn("ghcr.io/kubeflow/trainer/dataset-initializer", "initialize", "dataset"),
		image.BuiltIn("ghcr.io/kubeflow/trainer/model-initializer", "initialize", "model"),
	}
	all, _ := runtimes.All() // New reports what cannot be read
	for _, runtime := range all {
		for _, job := range runtime.Spec.Template.Spec.ReplicatedJobs {
			pod := &job.Template.Spec.Template.Spec
			for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
				if !slices.ContainsFunc(images, func(e image.Entry) bool { return e.Image == c.Image }) {
					images = append(images, image.Entry{Image: c.Image, Runtime: image.RuntimeProcess})
				}
			}
		}
	}
	return images
}

// Decorators give containers ssh.
func Decorators() []node.Decorator { return []node.Decorator{nodedecorator.SSH{}} }

// objects are the runtimes that TrainJobs name, and what tells Kubeflow's SDK that
// there are some.
func objects() ([]client.Object, error) {
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: statusserver.Namespace}},
		&corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Name: "kubeflow-trainer-public", Namespace: statusserver.Namespace},
			Data:       map[string]string{"kubeflow_trainer_version": runtimes.Version},
		},
	}
	all, err := runtimes.All()
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		r.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ClusterTrainingRuntimeKind))
		objects = append(objects, r)
	}
	return objects, nil
}
