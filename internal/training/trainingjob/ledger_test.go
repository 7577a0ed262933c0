// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// ledger is the book that the tests keep of what an operator has seen. What must
// be counted follows from it, and from nothing that the operator wrote.
type ledger struct {
	begun    map[types.UID]string // names of Pods that were seen to have begun, and not to have succeeded
	restarts map[types.UID]int32  // how often containers of a Pod were seen to have been restarted
}

func newLedger() ledger {
	return ledger{map[types.UID]string{}, map[types.UID]int32{}}
}

// total is how many restarts of containers were seen.
func (l *ledger) total() int {
	n := 0
	for _, r := range l.restarts {
		n += int(r)
	}
	return n
}

// look is told that an operator looks. What it returns is to be called when the
// status is written, and checks what was counted.
func (l *ledger) look(w *world) (written func()) {
	s := w.job.State()
	before, leaving, ended := s.Retries(), slices.Clone(s.LeavingPods), s.IsFinished()
	type sight struct {
		name     string
		restarts int32
		phase    corev1.PodPhase
		failed   bool
		wanted   bool
	}
	d := &decision{job: w.job}
	there := map[types.UID]sight{}
	for _, p := range w.list() {
		if !slices.Contains(leaving, p.UID) {
			_, wanted := d.replicaOf(&p.ObjectMeta)
			there[p.UID] = sight{p.Name, d.inPlace(p), p.Status.Phase, hasFailed(p), wanted}
		}
	}
	lost := 0
	for uid, name := range l.begun {
		if _, still := there[uid]; !still && w.wants(name) {
			lost++
		}
	}
	return func() {
		if ended {
			return
		}
		after, inPlace := w.job.State(), int32(0)
		failures := lost
		for uid, p := range there {
			inPlace += p.restarts - l.restarts[uid]
			l.restarts[uid] = p.restarts
			if p.failed && p.wanted {
				failures++
			}
		}
		switch {
		case after.IsFinished(), suspended(w.job):
			failures = 0
		case w.job.Policy().RestartScope == v1.RestartJob:
			failures = min(failures, 1)
		}
		if got, want := after.Retries()-before, inPlace+int32(failures); got != want {
			w.Fatalf("%d retries are counted at once, want %d: %d failures and %d restarts of containers, with %v", got, want, failures, inPlace, there)
		}
		clear(l.begun)
		for uid, p := range there {
			if p.wanted && p.phase == corev1.PodRunning && !slices.Contains(after.LeavingPods, uid) {
				l.begun[uid] = p.name
			}
		}
	}
}

// wants reports whether the job has a replica of that name.
func (w *world) wants(name string) bool {
	for t := range w.job.Replicas() {
		for _, r := range replicasOf(w.job, t) {
			if v1.ReplicaName(w.job.GetName(), r.Type, r.Index) == name {
				return true
			}
		}
	}
	return false
}

// TestEveryRetryIsCounted runs elastic jobs through histories: Pods wait, fail,
// are deleted, evicted, lost and replaced by others, their containers restart,
// the job is scaled, suspended and resumed. What is counted is what was seen.
func TestEveryRetryIsCounted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		scope := rapid.SampledFrom([]string{"Replica", "Job"}).Draw(rt, "scope")
		f, job := read(t, strings.NewReplacer("POLICY", "OnFailure", "RUN", fmt.Sprintf("{restartScope: %s, suspend: false}", scope)).Replace(elasticJob))
		job.SetUID("job")
		w := &world{T: rt, f: f, job: job, pods: map[string]*corev1.Pod{}, now: noon, failed: map[types.UID]bool{}, ledger: newLedger()}
		workers := job.Replicas()[v1.Worker]
		for range rapid.IntRange(10, 80).Draw(rt, "steps") {
			w.now = w.now.Add(time.Second)
			switch rapid.IntRange(0, 9).Draw(rt, "who") {
			case 0:
				*workers.Replicas = int32(rapid.IntRange(1, 3).Draw(rt, "replicas"))
			case 1:
				*job.Policy().Suspend = !*job.Policy().Suspend
			case 2, 3, 4, 5:
				w.reconcile(rapid.IntRange(0, 8).Draw(rt, "lives for"))
			default:
				name := fmt.Sprintf("j-worker-%d", rapid.IntRange(0, 2).Draw(rt, "pod"))
				w.happen(name, rapid.SampledFrom([]int{1, 2, 3, 4, 5}).Draw(rt, "what"))
			}
		}
	})
}
