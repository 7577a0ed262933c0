// SPDX-License-Identifier: Apache-2.0

package deadnode

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"diwan.dev/diwan/internal/platform/reconciling"
)

// Name is the controller's name in events.
const Name = "dead-node-controller"

// Config configures the handling of dead nodes.
type Config struct {
	// Labels are those by one of which a Pod is known that may be let go: the PodLabel
	// of each kind of the domains. Required.
	Labels []string
	// Events are what is told to the outside. Required.
	Events *reconciling.Events
	// Clock is the time. Default: the system's.
	Clock clock.PassiveClock
	// Patience is how long after its time to end a Pod of a silent node is
	// waited for: the node may only have been cut off for a while. Default 10 s.
	Patience time.Duration
}

// DefaultConfig returns the defaults, without the required fields.
func DefaultConfig() Config { return Config{Clock: clock.RealClock{}, Patience: 10 * time.Second} }

// concurrency is how many nodes are looked after at once.
const concurrency = 4

// SetupWithManager adds the reconciler to a manager.
func SetupWithManager(mgr manager.Manager, config Config) error {
	r := &reconciler{Config: config, client: mgr.GetClient(), live: mgr.GetAPIReader()}
	dead := predicate.NewPredicateFuncs(func(o client.Object) bool {
		node := o.(*corev1.Node)
		return silent(node) || outOfService(node)
	})
	dead.DeleteFunc = func(event.DeleteEvent) bool { return true }
	err := builder.ControllerManagedBy(mgr).
		Named(Name).
		For(&corev1.Node{}, builder.WithPredicates(dead)).
		WithOptions(reconciling.ControllerOptions(concurrency)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("cannot set up %s: %w", Name, err)
	}
	return nil
}

// Slim drops unused fields from a cached Node.
func Slim(object any) (any, error) {
	if n, ok := object.(*corev1.Node); ok {
		slim := &corev1.Node{TypeMeta: n.TypeMeta, ObjectMeta: n.ObjectMeta}
		slim.ManagedFields, slim.Annotations, slim.Labels = nil, nil, nil
		slim.Spec.Taints, slim.Status.Conditions = n.Spec.Taints, n.Status.Conditions
		return slim, nil
	}
	return object, nil
}
