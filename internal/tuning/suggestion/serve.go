// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/algorithm"
	"diwan.dev/diwan/internal/tuning/algorithm/deployment"
)

// places are the addresses of a suggestion's services, host:port; "" if the
// library does it.
type places struct{ search, stopping string }

// starting says that what runs a service is not ready yet.
type starting struct{ error }

// places returns the addresses of a suggestion's services. It starts those
// that run from an image; while one is not ready, the error says so.
func (r *Reconciler) places(ctx context.Context, s *v1beta1.Suggestion) (at places, err error) {
	services, err := r.Services.Services(ctx)
	if err != nil {
		return at, err
	}
	var run deployment.Parts
	if searchesOutside(s.Spec.Algorithm) {
		service, err := algorithm.Find(services.Suggestions, s.Spec.Algorithm.AlgorithmName)
		if err != nil {
			return at, err
		}
		if at.search = service.Endpoint; at.search == "" {
			at.search, run.Search = deployment.SearchAddress(s), &service
		}
	}
	if stopsOutside(s.Spec.EarlyStopping) {
		service, err := algorithm.Find(services.EarlyStoppings, s.Spec.EarlyStopping.AlgorithmName)
		if err != nil {
			return at, err
		}
		if at.stopping = service.Endpoint; at.stopping == "" {
			at.stopping, run.Stopping = deployment.StoppingAddress(s), &service
		}
	}
	if !run.Any() {
		return at, nil
	}
	return at, r.serve(ctx, s, run)
}

// serve creates the objects that run services from images, unless they exist.
func (r *Reconciler) serve(ctx context.Context, s *v1beta1.Suggestion, run deployment.Parts) error {
	if r.RunsNothing {
		return errors.New("cannot run the algorithm service: the operator lacks permission; set rbac.algorithmServices in the chart's values, or give the algorithm an endpoint")
	}
	d, err := r.deployed(ctx, s)
	if err != nil {
		return err
	}
	if d == nil {
		for _, o := range deployment.Objects(s, run) {
			if err := r.client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("cannot create %T %s/%s, which runs the algorithm service: %w", o, s.Namespace, o.GetName(), err)
			}
		}
		return starting{errors.New("the Deployment is not ready: it was just created")}
	}
	if !metav1.IsControlledBy(d, s) {
		return fmt.Errorf("cannot run the algorithm service: Deployment %s/%s is owned by another object", d.Namespace, d.Name)
	}
	if err := available(d); err != nil {
		return err
	}
	leads := &corev1.Service{}
	if err := r.live.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: deployment.Name(s)}, leads); err != nil {
		return fmt.Errorf("cannot get Service %s/%s: %w", s.Namespace, deployment.Name(s), err)
	}
	return deployment.LeadsToPod(s, leads)
}

// deployed returns what runs a suggestion's services, nil for nothing.
func (r *Reconciler) deployed(ctx context.Context, s *v1beta1.Suggestion) (*appsv1.Deployment, error) {
	if s.Spec.Algorithm == nil || r.RunsNothing {
		return nil, nil
	}
	d := &appsv1.Deployment{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: deployment.Name(s)}, d, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("cannot get Deployment %s/%s: %w", s.Namespace, deployment.Name(s), err)
	}
	return d, nil
}

// available is an error that says why a Deployment cannot be asked yet.
func available(d *appsv1.Deployment) error {
	why := "its Pod is being created"
	for _, c := range d.Status.Conditions {
		switch {
		case c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue && d.DeletionTimestamp == nil:
			return nil
		case c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue, c.Type == appsv1.DeploymentAvailable:
			why = c.Message
		}
	}
	return starting{fmt.Errorf("the Deployment is not ready: %s", why)}
}

// withdraw deletes the objects that run the services of a suggestion that has
// ended, or that needs none, such as one taken over from Katib whose algorithm
// the library has. Volumes stay until the suggestion is deleted.
func (r *Reconciler) withdraw(ctx context.Context, s *v1beta1.Suggestion) error {
	d, err := r.deployed(ctx, s)
	if err != nil || d == nil || d.DeletionTimestamp != nil || !metav1.IsControlledBy(d, s) {
		return err
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}
	for _, o := range []client.Object{service, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}} {
		if err := r.client.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot delete %T %s/%s: %w", o, d.Namespace, d.Name, err)
		}
	}
	return nil
}
