// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/objective"
)

// roster has every trial by experiment, from the watch. It is a view of the
// cache and can be rebuilt from it: no decision based on it depends on being
// made only once.
type roster struct {
	mu     sync.Mutex
	groups map[types.UID]*group
}

// group is the trials of one experiment.
type group struct {
	rows []row
	at   map[string]int // place in rows by name
}

// row is what counts of one trial.
type row struct {
	name   string
	index  int            // number of its suggestion, -1 for a trial that Katib made
	trial  *v1beta1.Trial // as in the cache: not to be changed; nil while only expected
	state  state
	ending bool // it is being deleted
	// stopping is set while its run is being stopped early.
	stopping bool
	score    objective.Score

	// until is, of a trial that was created but is not yet in the cache, when
	// to stop believing in it.
	until time.Time
}

func newRoster() *roster { return &roster{groups: map[types.UID]*group{}} }

// ownerOf is the experiment that owns a trial, or nil.
func ownerOf(t *v1beta1.Trial) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(t)
	if owner == nil || owner.Kind != v1beta1.ExperimentKind {
		return nil
	}
	return owner
}

// put records a trial as the cache has it and reports whether anything that
// counts is new.
func (r *roster) put(t *v1beta1.Trial) bool {
	owner := ownerOf(t)
	if owner == nil {
		return false
	}
	next := row{
		name: t.Name, index: indexOf(t), trial: t,
		state: stateOf(t.Status.Conditions), ending: !t.DeletionTimestamp.IsZero(), stopping: t.IsStopping(),
	}
	if next.state == succeeded || next.state == earlyStopped {
		next.score = objective.Of(t)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.groups[owner.UID]
	if g == nil {
		g = &group{at: map[string]int{}}
		r.groups[owner.UID] = g
	}
	return g.put(next)
}

// drop forgets a deleted trial and reports whether it was known.
func (r *roster) drop(t *v1beta1.Trial) bool {
	owner := ownerOf(t)
	if owner == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.groups[owner.UID]
	if g == nil || !g.drop(t.Name) {
		return false
	}
	if len(g.rows) == 0 {
		delete(r.groups, owner.UID)
	}
	return true
}

// expect records a trial that was just created, until the cache knows better
// or the time until.
func (r *roster) expect(experiment types.UID, name string, index int, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.groups[experiment]
	if g == nil {
		g = &group{at: map[string]int{}}
		r.groups[experiment] = g
	}
	if _, known := g.at[name]; !known {
		g.put(row{name: name, index: index, until: until})
	}
}

// with calls look with the trials of an experiment, without those expected in
// vain. look must not keep the group.
func (r *roster) with(experiment types.UID, now time.Time, look func(*group)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.groups[experiment]
	if g == nil {
		g = &group{}
	}
	g.expire(now)
	look(g)
}

func (g *group) put(next row) bool {
	i, known := g.at[next.name]
	if !known {
		g.at[next.name] = len(g.rows)
		g.rows = append(g.rows, next)
		return true
	}
	old := g.rows[i]
	g.rows[i] = next
	return old.trial == nil || old.state != next.state || old.ending != next.ending || old.stopping != next.stopping || old.score != next.score ||
		old.trial.UID != next.trial.UID
}

func (g *group) drop(name string) bool {
	i, known := g.at[name]
	if !known {
		return false
	}
	last := len(g.rows) - 1
	g.rows[i] = g.rows[last]
	g.at[g.rows[i].name] = i
	g.rows[last] = row{}
	g.rows = g.rows[:last]
	delete(g.at, name)
	return true
}

func (g *group) expire(now time.Time) {
	for i := len(g.rows) - 1; i >= 0; i-- {
		if g.rows[i].trial == nil && now.After(g.rows[i].until) {
			g.drop(g.rows[i].name)
		}
	}
}

// has reports whether the trial exists.
func (g *group) has(name string) bool {
	_, known := g.at[name]
	return known
}

// newestActive returns up to n active trials that are not being deleted, the
// newest first.
func (g *group) newestActive(n int) []*v1beta1.Trial {
	active := newest{most: n}
	for i := range slices.Backward(g.rows) {
		if row := &g.rows[i]; row.state.active() && !row.ending && row.trial != nil {
			active.add(row)
		}
	}
	var trials []*v1beta1.Trial
	for _, row := range active.sorted() {
		trials = append(trials, row.trial)
	}
	return trials
}

// lists returns the names of the newest trials in each state, at most keep of
// each, the oldest of them first.
func (g *group) lists(keep int) [states][]string {
	var of [states]newest
	for i := range slices.Backward(g.rows) {
		row := &g.rows[i]
		of[row.state].most = keep
		of[row.state].add(row)
	}
	var names [states][]string
	for s := range of {
		for _, row := range slices.Backward(of[s].sorted()) {
			names[s] = append(names[s], row.name)
		}
	}
	return names
}

// newest collects the newest of many rows. It is fast if they arrive newest
// first, as they usually do.
type newest struct {
	most int // how many to keep
	rows []*row
	last *row // anything older is not among the newest; nil while undecided
}

func (n *newest) add(r *row) {
	if n.most == 0 || n.last != nil && newestFirst(r, n.last) > 0 {
		return
	}
	n.rows = append(n.rows, r)
	if len(n.rows) >= 2*n.most {
		n.sorted()
	}
}

// sorted returns the newest rows, the newest first.
func (n *newest) sorted() []*row {
	slices.SortFunc(n.rows, newestFirst)
	if len(n.rows) >= n.most && n.most > 0 {
		n.rows = n.rows[:n.most]
		n.last = n.rows[n.most-1]
	}
	return n.rows
}

func newestFirst(a, b *row) int {
	return cmp.Or(cmp.Compare(b.index, a.index), cmp.Compare(b.name, a.name))
}

// indexOf returns the number of a trial's suggestion, -1 if it has none.
func indexOf(t *v1beta1.Trial) int {
	i, err := strconv.Atoi(t.Annotations[v1beta1.AnnotationTrialIndex])
	if err != nil || i < 0 {
		return -1
	}
	return i
}
