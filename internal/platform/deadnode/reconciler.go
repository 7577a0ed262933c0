// SPDX-License-Identifier: Apache-2.0

package deadnode

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// reconciler looks after the Pods of one node at a time.
type reconciler struct {
	Config
	client client.Client // reads of nodes come from the cache
	live   client.Reader // reads come from the API server
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	node := &corev1.Node{}
	switch err := r.client.Get(ctx, req.NamespacedName, node); {
	case apierrors.IsNotFound(err):
		node = nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("cannot get Node %s: %w", req.Name, err)
	}
	if !silent(node) && !outOfService(node) {
		return reconcile.Result{}, nil
	}
	pods, err := r.pods(ctx, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	lost, after := Decide(node, pods, r.Clock.Now(), r.Patience)
	for _, p := range lost {
		if err := r.release(ctx, p); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// pods returns the Pods of trials and training jobs on a node.
func (r *reconciler) pods(ctx context.Context, node string) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := r.live.List(ctx, &list, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return nil, fmt.Errorf("cannot list the Pods of Node %s: %w", node, err)
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !r.ours(&p) }), nil
}

// ours reports whether a Pod bears one of the labels.
func (r *reconciler) ours(p *corev1.Pod) bool {
	return slices.ContainsFunc(r.Labels, func(label string) bool { _, ok := p.Labels[label]; return ok })
}

// release deletes a Pod without the word of its kubelet, if it is the one that
// was seen, and says so on what owns it.
func (r *reconciler) release(ctx context.Context, p *corev1.Pod) error {
	err := r.client.Delete(ctx, p, client.GracePeriodSeconds(0), client.Preconditions{UID: &p.UID})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, or another has its name
	}
	if err != nil {
		return fmt.Errorf("cannot delete Pod %s/%s of unreachable Node %s: %w", p.Namespace, p.Name, p.Spec.NodeName, err)
	}
	about := client.Object(p)
	if owner := metav1.GetControllerOf(p); owner != nil {
		o := &metav1.PartialObjectMetadata{}
		o.APIVersion, o.Kind = owner.APIVersion, owner.Kind
		o.Namespace, o.Name, o.UID = p.Namespace, owner.Name, owner.UID
		about = o
	}
	r.Events.Warning(about, "NodeLost", "Pod %s was on Node %s, which is unreachable: it is considered lost", p.Name, p.Spec.NodeName)
	return nil
}
