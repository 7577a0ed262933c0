// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/internal/platform/cli/progress"
)

// warnings turns warning events about followed objects in one namespace into facts: a trial whose
// container cannot be started, or that waits for something, neither fails nor says why.
type warnings struct {
	client    client.WithWatch
	kinds     Kinds
	namespace string
	ids       []progress.ID
	since     time.Time
	facts     chan<- Fact
}

// run watches events until ctx ends.
func (w *warnings) run(ctx context.Context) {
	selector := fields.OneTermEqualSelector("type", corev1.EventTypeWarning)
	tell := func(seen any) {
		if event, ok := seen.(*corev1.Event); ok && w.kinds.IsNews(event) {
			w.tell(ctx, event)
		}
	}
	inform(ctx, w.client, &corev1.Event{}, &corev1.EventList{}, client.ListOptions{Namespace: w.namespace, FieldSelector: selector}, nil, cache.ResourceEventHandlerFuncs{
		AddFunc:    tell,
		UpdateFunc: func(_, seen any) { tell(seen) },
	})
}

// IsNews reports whether a warning tells what nothing else shows: what happens to a Pod, or for what
// something waits, such as a Job whose Pods cannot be created. How objects end is shown anyway, and what
// a reconciler tries again at once is none of the user's.
func (kinds Kinds) IsNews(event *corev1.Event) bool {
	switch event.InvolvedObject.Kind {
	case "Pod":
		return true
	case "Node":
		return false
	}
	return !slices.ContainsFunc(kinds, func(k Kind) bool { return slices.Contains(k.Quiet, event.Reason) })
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
	about := event.InvolvedObject
	for _, id := range w.ids {
		if w.kinds.Named(id.Kind).Made(about.Name, id.Name) {
			fact := Fact{ID: id, warning: textOf(event)}
			if about.Kind != "Pod" {
				fact.about = about.Name
			}
			send(ctx, w.facts, fact)
			return
		}
	}
}

// textOf returns the text of a warning.
func textOf(event *corev1.Event) string {
	message := randomSuffix.ReplaceAllString(brief(event.Message), `$1…"`)
	return progress.Clean(event.Reason + ": " + message)
}

// brief leaves out of the scheduler's message that others make no room either.
func brief(message string) string {
	message, _, _ = strings.Cut(message, " preemption: ")
	return strings.TrimSuffix(message, ".")
}

// randomSuffix is the end of a generated name in quotes: with it, the same trouble of two Pods would be two.
var randomSuffix = regexp.MustCompile(`("[a-z0-9.-]+-)[bcdfghjklmnpqrstvwxz2456789]{5}"`)

// byNamespace sorts what is followed by its namespace.
func byNamespace(targets []Target) map[string][]progress.ID {
	sorted := map[string][]progress.ID{}
	for _, t := range targets {
		sorted[t.Namespace] = append(sorted[t.Namespace], t.ID)
	}
	return sorted
}
