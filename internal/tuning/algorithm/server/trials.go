// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	manager "diwan.dev/diwan/api/manager/v1beta1"
)

// Trials are the trials of a namespace, which the server may stop.
type Trials struct {
	Client    client.Client
	Namespace string
}

// SetTrialStatus writes that a trial was stopped early, as Katib's service does:
// its controller and Diwan's take it from there.
func (s *Server) SetTrialStatus(ctx context.Context, r *manager.SetTrialStatusRequest) (*manager.SetTrialStatusReply, error) {
	if s.Trials == nil {
		return nil, status.Error(codes.Unimplemented, "cannot stop trials: this server does not run in a Pod")
	}
	if err := s.Trials.stop(ctx, r.GetTrialName()); err != nil {
		code := codes.Unavailable
		switch {
		case apierrors.IsNotFound(err):
			code = codes.NotFound
		case apierrors.IsForbidden(err):
			code = codes.PermissionDenied
		}
		return nil, status.Errorf(code, "cannot stop trial %s/%.300q: %v", s.Trials.Namespace, r.GetTrialName(), err)
	}
	return &manager.SetTrialStatusReply{}, nil
}

// stop writes the condition. A trial that has ended, or is being stopped, stays
// as it is.
func (t *Trials) stop(ctx context.Context, name string) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		trial := &kubeflow.Trial{}
		if err := t.Client.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: name}, trial); err != nil {
			return err
		}
		if trial.IsCompleted() || trial.IsStopping() {
			return nil
		}
		trial.Status.Conditions.Set(metav1.Now(), kubeflow.ConditionEarlyStopped, corev1.ConditionTrue, kubeflow.ReasonTrialEarlyStopped, "Trial is early stopped")
		if err := t.Client.Status().Update(ctx, trial); err != nil {
			return fmt.Errorf("cannot write its status: %w", err)
		}
		return nil
	})
}
