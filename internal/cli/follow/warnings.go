// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/cli/progress"
	"diwan.dev/diwan/internal/controller/trialname"
)

// warnings turns warning events about followed objects in one namespace into facts: a trial whose
// container cannot be started, or that waits for something, neither fails nor says why.
type warnings struct {
	client    client.WithWatch
	namespace string
	ids       []progress.ID
	since     time.Time
	facts     chan<- Fact
}

// run watches events until ctx ends.
func (w *warnings) run(ctx context.Context) {
	selector := fields.OneTermEqualSelector("type", corev1.EventTypeWarning)
	tell := func(seen any) {
		if event, ok := seen.(*corev1.Event); ok && isNews(event) {
			w.tell(ctx, event)
		}
	}
	inform(ctx, w.client, &corev1.Event{}, &corev1.EventList{}, client.ListOptions{Namespace: w.namespace, FieldSelector: selector}, cache.ResourceEventHandlerFuncs{
		AddFunc:    tell,
		UpdateFunc: func(_, seen any) { tell(seen) },
	})
}

// waits are the reasons of events that say for what an experiment or a trial waits, which shows in
// nothing else.
var waits = []string{
	kubeflow.ReasonExperimentQuotaExceeded, kubeflow.ReasonRunKindMissing, kubeflow.ReasonRunPermissionMissing,
	kubeflow.ReasonRunQuotaExceeded, kubeflow.ReasonRunForbidden, kubeflow.ReasonTrialRetrying,
}

// isNews reports whether an event is about a Pod, or says for what a trial waits.
func isNews(event *corev1.Event) bool {
	return event.InvolvedObject.Kind == "Pod" || slices.Contains(waits, event.Reason)
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

// Belongs reports whether a Pod or a trial is the one of a name, or one that a Job or an
// experiment of that name made.
func Belongs(pod, name string) bool {
	return pod == name || strings.HasPrefix(pod, name+"-") || strings.HasPrefix(pod, trialname.Prefix(name)+"-")
}

// byNamespace sorts objects by their namespace.
func byNamespace(ids []progress.ID) map[string][]progress.ID {
	sorted := map[string][]progress.ID{}
	for _, id := range ids {
		sorted[id.Namespace] = append(sorted[id.Namespace], id)
	}
	return sorted
}
