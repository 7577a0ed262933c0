// SPDX-License-Identifier: Apache-2.0

package training

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/config/runtimes"
)

// runtimeOwner is the field manager of the runtimes.
const runtimeOwner = "diwan-operator"

// runtimeInstaller installs the runtimes that TrainJobs name, once, when its
// operator has become the leader. The API server asks the operator itself about
// them, which may not be reached yet: it tries until it has succeeded.
type runtimeInstaller struct{ client client.Client }

// Start implements manager.Runnable.
func (i runtimeInstaller) Start(ctx context.Context) error {
	all, err := runtimes.All()
	if err != nil {
		return err
	}
	log := log.FromContext(ctx).WithName("runtimes")
	for _, r := range all {
		told := ""
		_ = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
			err := i.apply(ctx, r)
			switch {
			case err == nil:
				return true, nil
			case apierrors.IsConflict(err):
				log.Info("A ClusterTrainingRuntime that someone else changed stays as it is", "runtime", r.Name, "cause", err.Error())
				return true, nil
			case ctx.Err() == nil && err.Error() != told:
				told = err.Error()
				log.Error(err, "Cannot install a ClusterTrainingRuntime; trying again", "runtime", r.Name)
			}
			return false, nil
		})
	}
	return nil
}

// apply brings a runtime up to date. It takes no field from who set another
// value there: that is a conflict.
func (i runtimeInstaller) apply(ctx context.Context, r *v1alpha1.ClusterTrainingRuntime) error {
	r.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ClusterTrainingRuntimeKind))
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r)
	if err != nil {
		return fmt.Errorf("cannot encode ClusterTrainingRuntime %s: %w", r.Name, err)
	}
	object := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: fields})
	if err := i.client.Apply(ctx, object, client.FieldOwner(runtimeOwner)); err != nil {
		return fmt.Errorf("cannot apply ClusterTrainingRuntime %s: %w", r.Name, err)
	}
	return nil
}
