// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// world is an API server with one experiment, and what a reconciler has seen
// of it. Its watch delivers each change of a trial later, in order; the
// Suggestion that it has seen is any earlier one. The reconciler carries out
// plans as the real one does, and dies between any two writes.
type world struct {
	// What is stored.
	experiment *v1beta1.Experiment
	suggestion *v1beta1.Suggestion
	trials     map[string]*v1beta1.Trial
	version    int
	highest    int32 // the highest maxTrialCount there was
	ran        map[string]int

	// What the reconciler has seen.
	roster *roster
	queue  []change
	seen   *v1beta1.Suggestion
}

// change is one of a trial that the watch will tell.
type change struct {
	trial *v1beta1.Trial
	gone  bool
}

const (
	keepInWorld  = 1 // assignments that stay in the Suggestion's status
	mostParallel = 5
)

var worldTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newWorld(parallel, limit int32, policy v1beta1.ResumePolicyType) *world {
	e := asking(parallel, limit)
	e.Name, e.UID, e.Spec.ResumePolicy, e.Status.Conditions = "e", "e", policy, nil
	return &world{
		experiment: e, trials: map[string]*v1beta1.Trial{}, ran: map[string]int{},
		highest: limit, roster: newRoster(),
	}
}

func (w *world) store(t *v1beta1.Trial) {
	w.version++
	t = t.DeepCopy()
	t.ResourceVersion = fmt.Sprint(w.version)
	w.trials[t.Name] = t
	w.queue = append(w.queue, change{trial: t})
}

func (w *world) deliver(n int) {
	for _, e := range w.queue[:n] {
		if e.gone {
			w.roster.drop(e.trial)
		} else {
			w.roster.put(e.trial)
		}
	}
	w.queue = w.queue[n:]
}

// look is what Reconciler.look sees.
func (w *world) look() situation {
	s := situation{experiment: w.experiment, suggestion: w.seen}
	w.roster.with("e", worldTime, func(g *group) {
		s.trials = g.tally(w.experiment.Spec.Objective)
		if w.seen == nil {
			return
		}
		for i, a := range w.seen.Status.Suggestions {
			if !g.has(a.Name) {
				s.waiting = append(s.waiting, i)
			}
		}
	})
	return s
}

// reconcile decides on what was seen, and writes until it dies.
func (w *world) reconcile(dies func() bool) {
	s := w.look()
	p := decide(s)
	if p.verdict != nil {
		enter(&w.experiment.Status, p.verdict, metav1.Time{})
		if p.ends() {
			return
		}
	}
	if p.end > 0 {
		var newest []*v1beta1.Trial
		w.roster.with("e", worldTime, func(g *group) { newest = g.newestActive(p.end) })
		for _, t := range newest {
			if dies() {
				return
			}
			if now := w.trials[t.Name]; now != nil && now.ResourceVersion == t.ResourceVersion {
				w.remove(t.Name)
			}
		}
	}
	for _, place := range p.create {
		if dies() {
			return
		}
		w.create(w.seen.Status.Suggestions[place].Name)
	}
	if p.requests > 0 && !dies() {
		w.ask(p.requests)
	}
}

func (w *world) create(name string) {
	var index int
	fmt.Sscanf(name, "e-%d", &index)
	if w.trials[name] == nil {
		t := trialIn(index, pending, "")
		t.UID = types.UID(fmt.Sprintf("%d.%d", index, w.ran[name]))
		w.ran[name]++
		w.store(t)
	}
	w.roster.expect("e", name, index, worldTime.Add(time.Minute))
}

func (w *world) ask(requests int32) {
	w.version++
	if w.suggestion == nil {
		w.suggestion = &v1beta1.Suggestion{Spec: v1beta1.SuggestionSpec{Requests: requests}}
	} else if w.seen == nil || w.seen.ResourceVersion != w.suggestion.ResourceVersion {
		return // conflict, or it exists already
	} else {
		w.suggestion = w.suggestion.DeepCopy()
		w.suggestion.Spec.Requests = requests
	}
	w.suggestion.ResourceVersion = fmt.Sprint(w.version)
}

// answer is what the Suggestion's reconciler does.
func (w *world) answer() {
	if w.suggestion == nil || w.suggestion.Status.SuggestionCount >= w.suggestion.Spec.Requests {
		return
	}
	w.version++
	s := w.suggestion.DeepCopy()
	s.ResourceVersion = fmt.Sprint(w.version)
	for i := s.Status.SuggestionCount; i < s.Spec.Requests; i++ {
		s.Status.Suggestions = append(s.Status.Suggestions, v1beta1.TrialAssignment{Name: fmt.Sprintf("e-%08d", i)})
	}
	s.Status.SuggestionCount = s.Spec.Requests
	n, list := len(s.Status.Suggestions), s.Status.Suggestions[:0]
	for i, a := range s.Status.Suggestions {
		if t := w.trials[a.Name]; i >= n-keepInWorld || t == nil || !t.IsCompleted() {
			list = append(list, a)
		}
	}
	s.Status.Suggestions = list
	w.suggestion = s
}

// remove begins to delete a trial.
func (w *world) remove(name string) {
	t := w.trials[name].DeepCopy()
	t.DeletionTimestamp = &metav1.Time{Time: worldTime}
	w.store(t)
}

// progress moves a trial on: it runs, ends, or is gone where it was deleted.
func (w *world) progress(name string, end state) {
	t := w.trials[name].DeepCopy()
	switch {
	case t.DeletionTimestamp != nil:
		delete(w.trials, name)
		w.queue = append(w.queue, change{trial: t, gone: true})
		return
	case stateOf(t.Status.Conditions) == pending:
		t.Status.Conditions.Set(metav1.Time{}, v1beta1.ConditionRunning, corev1.ConditionTrue, "", "")
	case !t.IsCompleted():
		t.Status.Conditions.Complete(metav1.Time{}, conditionOf[end], "", "")
	default:
		return
	}
	w.store(t)
}

func (w *world) names() []string {
	names := make([]string, 0, len(w.trials))
	for name := range w.trials {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// restart is a new process: it lists what is stored.
func (w *world) restart() {
	w.roster, w.queue, w.seen = newRoster(), nil, w.suggestion
	for _, t := range w.trials {
		w.roster.put(t)
	}
}

// round lets everything happen once, in order.
func (w *world) round() {
	w.deliver(len(w.queue))
	w.seen = w.suggestion
	w.reconcile(func() bool { return false })
	w.answer()
	for _, name := range w.names() {
		w.progress(name, succeeded)
	}
}

// calm lets everything happen in order, without deaths, until nothing changes.
func (w *world) calm(t *rapid.T) {
	for range 1000 {
		before := w.version
		completed := w.experiment.IsCompleted()
		w.round()
		if w.version == before && len(w.queue) == 0 && w.experiment.IsCompleted() == completed {
			return
		}
	}
	t.Fatal("the world does not come to rest")
}

// calmWhileSuspended is calm for an experiment that is suspended: it makes no
// trial any more.
func (w *world) calmWhileSuspended(t *rapid.T) {
	if !w.experiment.Spec.Suspend {
		return
	}
	made := func() (n int) {
		for _, times := range w.ran {
			n += times
		}
		return n
	}
	before := made()
	w.calm(t)
	if n := made() - before; n > 0 {
		t.Fatalf("%d trials were made while the experiment was suspended", n)
	}
	if !w.experiment.IsCompleted() && !w.experiment.Status.Conditions.IsTrue(v1beta1.ConditionSuspended) {
		t.Fatalf("the experiment does not say that it is suspended: %+v", w.experiment.Status.Conditions)
	}
}

// TestStaleViewsAndDeaths is the promise of the package document.
func TestStaleViewsAndDeaths(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := int32(rapid.IntRange(1, 12).Draw(t, "limit"))
		policy := rapid.SampledFrom([]v1beta1.ResumePolicyType{v1beta1.NeverResume, v1beta1.LongRunning}).Draw(t, "policy")
		w := newWorld(int32(rapid.IntRange(1, mostParallel).Draw(t, "parallel")), limit, policy)
		edited := false // someone deleted trials or lowered a budget
		some := func(t *rapid.T) string {
			if len(w.trials) == 0 {
				t.Skip("no trials")
			}
			return rapid.SampledFrom(w.names()).Draw(t, "trial")
		}
		t.Repeat(map[string]func(*rapid.T){
			"round":     func(t *rapid.T) { w.round() },
			"reconcile": func(t *rapid.T) { w.reconcile(func() bool { return false }) },
			"die": func(t *rapid.T) {
				after := rapid.IntRange(0, 5).Draw(t, "writes")
				w.reconcile(func() bool { after--; return after < 0 })
				w.restart()
			},
			"deliver": func(t *rapid.T) { w.deliver(rapid.IntRange(0, len(w.queue)).Draw(t, "events")) },
			"see":     func(t *rapid.T) { w.seen = w.suggestion },
			"answer":  func(t *rapid.T) { w.answer() },
			"progress": func(t *rapid.T) {
				w.progress(some(t), rapid.SampledFrom([]state{succeeded, failed, metricsUnavailable}).Draw(t, "end"))
			},
			"delete trial": func(t *rapid.T) { w.remove(some(t)); edited = true },
			"change parallel": func(t *rapid.T) {
				w.experiment.Spec.ParallelTrialCount = ptr.To(int32(rapid.IntRange(1, mostParallel).Draw(t, "parallel")))
				edited = true
			},
			"suspend": func(t *rapid.T) { w.experiment.Spec.Suspend = !w.experiment.Spec.Suspend },
			"raise limit": func(t *rapid.T) {
				w.highest += int32(rapid.IntRange(1, 3).Draw(t, "by"))
				w.experiment.Spec.MaxTrialCount = ptr.To(w.highest)
			},
			"": func(t *rapid.T) {
				if w.suggestion != nil && w.suggestion.Spec.Requests > w.highest {
					t.Fatalf("%d suggestions were requested, maxTrialCount was at most %d", w.suggestion.Spec.Requests, w.highest)
				}
				if w.suggestion != nil && int(w.suggestion.Spec.Requests)-len(w.ran) > mostParallel {
					t.Fatalf("%d suggestions were requested, %d used", w.suggestion.Spec.Requests, len(w.ran))
				}
				if len(w.ran) > int(w.highest) {
					t.Fatalf("there were %d trials, maxTrialCount was at most %d", len(w.ran), w.highest)
				}
				active := 0
				for _, trial := range w.trials {
					if !trial.IsCompleted() {
						active++
					}
				}
				if parallel := int(*w.experiment.Spec.ParallelTrialCount); !edited && active > parallel {
					t.Fatalf("%d trials are active, parallelTrialCount is %d", active, parallel)
				}
				for name, n := range w.ran {
					if !edited && n > 1 {
						t.Fatalf("trial %s was made %d times", name, n)
					}
				}
			},
		})
		w.calmWhileSuspended(t)
		completedBefore := w.experiment.IsCompleted()
		w.experiment.Spec.Suspend = false
		w.calm(t)
		if !w.experiment.IsCompleted() {
			t.Fatal("the experiment does not end")
		}
		done := 0
		for _, trial := range w.trials {
			if !trial.IsCompleted() {
				t.Fatalf("trial %s does not end", trial.Name)
			}
			done++
		}
		if !completedBefore && !edited && done != int(w.highest) {
			t.Fatalf("%d trials ended, want maxTrialCount %d", done, w.highest)
		}
	})
}
