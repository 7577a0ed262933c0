// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// restShare is the ratio of the pause after reconciling a job to the time it
// took, so that one worker spends only a fraction of its time on one job. A job
// with a thousand replicas has thousands of changes while it starts, which
// should share reconciles; for a small job it is unnoticeable.
const restShare = 4

// longestRest bounds that, where looks took long for other reasons.
const longestRest = 500 * time.Millisecond

// pace is when jobs may be looked at again.
type pace struct {
	mu   sync.Mutex
	next map[types.NamespacedName]time.Time
}

// wait is the remaining pause of a job, 0 if none.
func (p *pace) wait(job types.NamespacedName, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.next[job].Sub(now))
}

// took notes how long a look took that ended now. One that was short leaves no
// trace.
func (p *pace) took(job types.NamespacedName, long time.Duration, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rest := min(restShare*long, longestRest)
	if rest < 5*time.Millisecond {
		delete(p.next, job)
		return
	}
	if p.next == nil {
		p.next = map[types.NamespacedName]time.Time{}
	}
	p.next[job] = now.Add(rest)
}

func (p *pace) forget(job types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.next, job)
}
