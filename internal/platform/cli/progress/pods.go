// SPDX-License-Identifier: Apache-2.0

package progress

// Pod is the state of one Pod of a followed object.
type Pod struct {
	// Name is the Pod's name, Unit that of what the object counts: the Pod itself, its Job or its trial.
	Name, Unit string
	// State is its phase: Pending, Running, Succeeded or Failed.
	State State
	// Why says why a Pod waits; "" where it does not say.
	Why string
	// Failure describes how one of its containers last failed; "" if none
	// did.
	Failure string
	// Gone is whether it was deleted.
	Gone bool
}

// SetPod takes in a Pod of the object.
func (w *Work) SetPod(pod Pod) {
	if pod.Failure != "" {
		w.failures[pod.Unit], w.failure = pod.Failure, pod.Failure
	}
	delete(w.troubles, pod.Unit)
	delete(w.troubles, w.id.Name)
	w.pods[pod.Name] = pod
	if pod.Gone {
		delete(w.pods, pod.Name)
	}
}

// SetTrouble records why something has no Pods yet: the object, or what it counts.
func (w *Work) SetTrouble(name, text string) { w.troubles[name] = text }

// units sorts what the object counts by its Pods: what runs, and what waits, of which no Pod runs. why
// is what one of those says that waits.
func (w *Work) units() (running, waiting map[string]bool, why string) {
	running, waiting = map[string]bool{}, map[string]bool{}
	for _, pod := range w.pods {
		switch pod.State {
		case Running:
			running[pod.Unit] = true
		case Pending:
			waiting[pod.Unit] = true
		}
	}
	for _, pod := range w.pods {
		if running[pod.Unit] {
			delete(waiting, pod.Unit)
		} else if pod.State == Pending && (why == "" || pod.Why != "" && pod.Why < why) {
			why = pod.Why
		}
	}
	return running, waiting, why
}

// present corrects counts, which objects give, by what their Pods do: that a trial has a run object, or
// a Job a Pod, does not mean that it runs.
func (w *Work) present(c Counts) (counts Counts, why string) {
	running, waiting, why := w.units()
	for name, trouble := range w.troubles {
		if w.trials[name].State.Ended() {
			continue
		}
		if w.searches() {
			waiting[name] = true
		}
		if why == "" || trouble < why {
			why = trouble
		}
	}
	if !w.searches() {
		if len(running)+len(waiting) > 0 {
			c.Running, c.Pending = len(running), len(waiting)
		}
		return c, why
	}
	for name, trial := range w.trials {
		switch {
		case trial.State == Pending && running[name]:
			c.Pending--
			c.Running++
		case trial.State == Running && waiting[name]:
			c.Running--
			c.Pending++
		}
	}
	return c, why
}
