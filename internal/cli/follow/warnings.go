// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/internal/cli/progress"
)

// warnings turns warning events about Pods of followed objects in one namespace into facts: a
// trial whose container cannot be started neither fails nor says why.
type warnings struct {
	client    client.WithWatch
	namespace string
	ids       []progress.ID
	since     time.Time
	facts     chan<- Fact
}

// run watches events until ctx ends.
func (w *warnings) run(ctx context.Context) {
	selector := fields.AndSelectors(
		fields.OneTermEqualSelector("type", corev1.EventTypeWarning),
		fields.OneTermEqualSelector("involvedObject.kind", "Pod"),
	)
	tell := func(seen any) {
		if event, ok := seen.(*corev1.Event); ok {
			w.tell(ctx, event)
		}
	}
	inform(ctx, w.client, &corev1.Event{}, &corev1.EventList{}, client.ListOptions{Namespace: w.namespace, FieldSelector: selector}, cache.ResourceEventHandlerFuncs{
		AddFunc:    tell,
		UpdateFunc: func(_, seen any) { tell(seen) },
	})
}

// tell hands over an event that is news, if it is about one of the followed objects.
func (w *warnings) tell(ctx context.Context, event *corev1.Event) {
	at := event.LastTimestamp.Time
	if at.IsZero() {
		at = event.EventTime.Time
	}
	// Times of events are whole seconds.
	if at.Before(w.since.Truncate(time.Second)) {
		return
	}
	for _, id := range w.ids {
		if Belongs(event.InvolvedObject.Name, id.Name) {
			send(ctx, w.facts, Fact{ID: id, warning: progress.Clean(event.Reason + ": " + event.Message)})
			return
		}
	}
}

// Belongs reports whether a Pod is the one of a name, or one that a Job or a trial of an
// experiment of that name made.
func Belongs(pod, name string) bool {
	return pod == name || strings.HasPrefix(pod, name+"-")
}

// byNamespace sorts objects by their namespace.
func byNamespace(ids []progress.ID) map[string][]progress.ID {
	sorted := map[string][]progress.ID{}
	for _, id := range ids {
		sorted[id.Namespace] = append(sorted[id.Namespace], id)
	}
	return sorted
}
