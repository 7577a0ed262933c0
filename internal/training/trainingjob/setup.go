// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
	"diwan.dev/diwan/internal/platform/reconciling"
)

// Name is the name in events.
const Name = "training-operator"

// Config configures the reconciler of jobs.
type Config struct {
	// Metrics and Events records Kubernetes events. Required.
	Metrics *Metrics
	Events  *reconciling.Events
	// GangScheduler is what places a job's Pods all or none: kubernetes by its own
	// PodGroups, volcano, or a scheduler with the coscheduling plugin. Default: none.
	GangScheduler string
	// GangsByPolicy leaves jobs without a schedulingPolicy out of that. Default:
	// all jobs are gangs.
	GangsByPolicy bool
	// InitImage is the image of containers that wait for a PyTorchJob's master. Default:
	// DefaultInitImage.
	InitImage string
	// Without names kinds, such as pytorchjobs, that are left to another
	// controller. Default: none.
	Without []string
	// Clock is the time. Default: the system's.
	Clock clock.PassiveClock
	// Concurrency is how many jobs of a kind are reconciled at once. Default 8.
	Concurrency int
}

// DefaultConfig returns the defaults, without the required fields.
func DefaultConfig() Config { return Config{Clock: clock.RealClock{}, Concurrency: 8} }

// ownerIndex finds objects by the UID of their controller.
const ownerIndex = "trainingjob.controller"

// SetupWithManager adds a reconciler of each kind to a manager. Kinds that the
// cluster does not have are left out.
func SetupWithManager(mgr manager.Manager, config Config) error {
	frameworks, err := served(mgr, config)
	if err != nil || len(frameworks) == 0 {
		return err
	}
	for _, obj := range []client.Object{&corev1.Pod{}, &corev1.Service{}} {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), obj, ownerIndex, byController); err != nil {
			return fmt.Errorf("cannot set up %s: %w", Name, err)
		}
	}
	groups, err := groupKinds(config.GangScheduler, mgr.GetRESTMapper())
	if err != nil {
		return fmt.Errorf("cannot set up %s: %w", Name, err)
	}
	kinds := append(ownedKinds(frameworks), groups...)
	owned, err := newOwnedCache(mgr, kinds)
	if err != nil {
		return fmt.Errorf("cannot set up %s: %w", Name, err)
	}
	for _, f := range frameworks {
		job := f.New()
		t := job.Traits()
		if config.GangScheduler != "" {
			f = gang{f, config.GangScheduler, config.GangsByPolicy}
		}
		r := &reconciler{Config: config, framework: f, client: mgr.GetClient(), live: mgr.GetAPIReader(), owned: owned}
		b := builder.ControllerManagedBy(mgr).
			Named(t.Controller).
			For(job).
			Owns(&corev1.Pod{}).
			Owns(&corev1.Service{}).
			WithOptions(reconciling.ControllerOptions(config.Concurrency))
		for _, deleted := range r.deletions(owned, kinds) {
			b = b.WatchesRawSource(deleted)
		}
		if t.Framework == "mpi" {
			b = b.WatchesRawSource(source.Kind(owned, &batchv1.Job{},
				handler.TypedEnqueueRequestForOwner[*batchv1.Job](mgr.GetScheme(), mgr.GetRESTMapper(), job, handler.OnlyControllerOwner())))
		}
		if config.GangScheduler == volcano && len(groups) > 0 {
			b = b.Owns(newGroup(volcano)) // its phase says when Pods may be made
		}
		if err := b.Complete(r); err != nil {
			return fmt.Errorf("cannot set up %s: %w", t.Controller, err)
		}
	}
	return nil
}

// served are the frameworks of the kinds that are not left to others and that the
// cluster has.
func served(mgr manager.Manager, config Config) ([]Framework, error) {
	var frameworks []Framework
	for _, f := range Frameworks() {
		t := f.New().Traits()
		if slices.Contains(config.Without, t.Plural) {
			continue
		}
		_, err := mgr.GetRESTMapper().RESTMapping(v1.GroupVersion.WithKind(t.Kind).GroupKind(), v1.Version)
		if meta.IsNoMatchError(err) {
			mgr.GetLogger().Info("Leaving out a kind that is not installed", "kind", t.Kind)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot set up %s: %w", t.Controller, err)
		}
		if _, ok := f.(PyTorch); ok {
			f = PyTorch{InitImage: config.InitImage}
		}
		frameworks = append(frameworks, f)
	}
	return frameworks, nil
}

func byController(obj client.Object) []string {
	if owner := metav1.GetControllerOf(obj); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}
