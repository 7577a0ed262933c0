// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
)

// Normal events of upstream's controllers and scheduler tell what conditions
// tell too, and each costs as much as a step of a trial. These are a rate per
// second, and what may come at once; what is beyond is dropped. Warnings pass.
const (
	normalEventRate  = 1
	normalEventBurst = 50
)

func newEventBudget() flowcontrol.PassiveRateLimiter {
	return flowcontrol.NewTokenBucketPassiveRateLimiter(normalEventRate, normalEventBurst)
}

// sparing is a client whose Normal events are kept to a budget.
type sparing struct {
	kubernetes.Interface
	budget flowcontrol.PassiveRateLimiter
}

// CoreV1 implements kubernetes.Interface. It is a pointer because the namespace
// controller asks whether it is nil.
func (s sparing) CoreV1() typedcorev1.CoreV1Interface {
	return &sparingCore{s.Interface.CoreV1(), s.budget}
}

type sparingCore struct {
	typedcorev1.CoreV1Interface
	budget flowcontrol.PassiveRateLimiter
}

// Events implements typedcorev1.CoreV1Interface.
func (s *sparingCore) Events(namespace string) typedcorev1.EventInterface {
	return sparingEvents{s.CoreV1Interface.Events(namespace), s.budget}
}

type sparingEvents struct {
	typedcorev1.EventInterface
	budget flowcontrol.PassiveRateLimiter
}

// CreateWithEventNamespaceWithContext implements typedcorev1.EventExpansion.
func (s sparingEvents) CreateWithEventNamespaceWithContext(ctx context.Context, event *corev1.Event) (*corev1.Event, error) {
	if event.Type == corev1.EventTypeNormal && !s.budget.TryAccept() {
		return event, nil
	}
	return s.EventInterface.CreateWithEventNamespaceWithContext(ctx, event)
}

// CreateWithEventNamespace implements typedcorev1.EventExpansion; event
// broadcasters still call this form.
func (s sparingEvents) CreateWithEventNamespace(event *corev1.Event) (*corev1.Event, error) {
	return s.CreateWithEventNamespaceWithContext(context.Background(), event)
}

// sparingSink is the scheduler's way to events, kept to a budget.
type sparingSink struct {
	events.EventSink
	budget flowcontrol.PassiveRateLimiter
}

// Create implements events.EventSink.
func (s sparingSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	if event.Type == corev1.EventTypeNormal && !s.budget.TryAccept() {
		return event, nil
	}
	return s.EventSink.Create(ctx, event)
}
