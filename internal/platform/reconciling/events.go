// SPDX-License-Identifier: Apache-2.0

package reconciling

import (
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
)

// Events records events about objects, as many as are worth their cost.
//
// Each event is a write to the API server, about as expensive as one of the
// few that a whole trial takes. Normal events repeat what conditions say, so
// only a trickle passes when trials are fast; warnings have a separate budget.
// Each namespace has its own budgets, so that a busy one does not silence
// others. Events over budget are dropped, never delayed.
type Events struct {
	recorder         events.EventRecorder
	normal, warnings *budgets
}

// Budgets of events, each a rate per second and a burst. Fifty suffice for an
// experiment with a dozen trials, whatever its speed.
const (
	normalRate, normalBurst   = 1, 50
	warningRate, warningBurst = 20, 200
	noteLimit                 = 1024 // bytes that the events API accepts
)

// NewEvents returns Events that go to recorder.
func NewEvents(recorder events.EventRecorder) *Events {
	return &Events{recorder: recorder, normal: newBudgets(normalRate, normalBurst), warnings: newBudgets(warningRate, warningBurst)}
}

// Normal records that something went its way.
func (e *Events) Normal(about runtime.Object, reason, format string, args ...any) {
	if e.normal.accept(about) {
		e.record(about, corev1.EventTypeNormal, reason, format, args)
	}
}

// Warning records that something needs a look.
func (e *Events) Warning(about runtime.Object, reason, format string, args ...any) {
	if e.warnings.accept(about) {
		e.record(about, corev1.EventTypeWarning, reason, format, args)
	}
}

func (e *Events) record(about runtime.Object, kind, reason, format string, args []any) {
	note := fmt.Sprintf(format, args...)
	if len(note) > noteLimit {
		note = strings.ToValidUTF8(note[:noteLimit-3], "") + "..."
	}
	e.recorder.Eventf(about, nil, kind, reason, "Reconcile", "%s", note)
}

// budgets are equal budgets for all namespaces; "" is for cluster-scoped
// objects.
type budgets struct {
	rate  float32
	burst int

	mu sync.Mutex
	of map[string]flowcontrol.PassiveRateLimiter
}

func newBudgets(rate float32, burst int) *budgets {
	return &budgets{rate: rate, burst: burst, of: map[string]flowcontrol.PassiveRateLimiter{}}
}

// accept takes one event from the budget of the object's namespace.
func (b *budgets) accept(about runtime.Object) bool {
	namespace := ""
	if o, ok := about.(metav1.Object); ok {
		namespace = o.GetNamespace()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of[namespace] == nil {
		b.of[namespace] = flowcontrol.NewTokenBucketPassiveRateLimiter(b.rate, b.burst)
	}
	return b.of[namespace].TryAccept()
}
