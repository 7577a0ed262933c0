// SPDX-License-Identifier: Apache-2.0

// Package lease tracks which program has a trial that runs outside Kubernetes.
//
//	free ──Acquire──▶ held ──Finish──▶ told ──▶ the trial's controller ends it
//	  ▲                │ ▲
//	  │                └─┘ Renew, with each report
//	  └───Release── expired
//
// A lease is status.lease of its Trial. Everything here is a function of the
// trial and the time; callers write a changed trial with optimistic concurrency,
// so that only one of two programs gets it. Only the trial's controller calls
// Release, and only it ends a trial.
//
// A program whose lease has expired may no longer report; the controller
// releases it a moment later, Slack, so that nothing of the old attempt arrives
// after that, though clocks differ a little.
package lease

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// Slack is how long after its expiry a lease is released, where its term is
// long; of a short term it is a quarter.
const Slack = 2 * time.Second

// Free reports whether a program may take the trial.
func Free(t *v1beta1.Trial) bool {
	return t.Spec.External != nil && t.DeletionTimestamp.IsZero() && !t.IsCompleted() && !t.IsStopping() &&
		(t.Status.Lease == nil || t.Status.Lease.ID == "")
}

// Held reports whether the lease of this name may be used now: its trial is
// under way, and the lease has not run out.
func Held(t *v1beta1.Trial, id string, now time.Time) bool {
	l := t.Status.Lease
	return Is(t, id) && l.Outcome == "" && t.DeletionTimestamp.IsZero() && !t.IsCompleted() && now.Before(Expiry(t))
}

// Is reports whether the trial's lease, which may have ended, has this name.
func Is(t *v1beta1.Trial, id string) bool {
	return t.Status.Lease != nil && id != "" && t.Status.Lease.ID == id
}

// Acquire gives a free trial to a worker.
func Acquire(t *v1beta1.Trial, id, worker string, now time.Time) {
	attempt := int32(1)
	if t.Status.Lease != nil {
		attempt = t.Status.Lease.Attempt + 1
	}
	at := metav1.NewMicroTime(now)
	t.Status.Lease = &v1beta1.TrialLease{Attempt: attempt, ID: id, Worker: worker, AcquireTime: &at, ExpireTime: after(now, t)}
}

// Renew lets a held lease run from now, and reports whether that is worth a
// write: it is when a third of the term is over.
func Renew(t *v1beta1.Trial, now time.Time) bool {
	if Expiry(t).Sub(now) > t.Spec.External.Term()*2/3 {
		return false
	}
	t.Status.Lease.ExpireTime = after(now, t)
	return true
}

// Finish records the outcome that the worker reports.
func Finish(t *v1beta1.Trial, outcome v1beta1.LeaseOutcome, message string) {
	t.Status.Lease.Outcome, t.Status.Lease.Message = outcome, message
}

// Overdue is how long it is until an unused lease is released; it is not
// positive when that is due.
func Overdue(t *v1beta1.Trial, now time.Time) time.Duration {
	return Expiry(t).Add(min(Slack, t.Spec.External.Term()/4)).Sub(now)
}

// Release gives a trial back whose worker says nothing any more.
func Release(t *v1beta1.Trial) {
	t.Status.Lease = &v1beta1.TrialLease{Attempt: t.Status.Lease.Attempt, Worker: t.Status.Lease.Worker}
}

// Expiry is when the lease runs out; the zero time where nobody has the trial.
func Expiry(t *v1beta1.Trial) time.Time {
	if t.Status.Lease == nil || t.Status.Lease.ID == "" || t.Status.Lease.ExpireTime == nil {
		return time.Time{}
	}
	return t.Status.Lease.ExpireTime.Time
}

func after(now time.Time, t *v1beta1.Trial) *metav1.MicroTime {
	at := metav1.NewMicroTime(now.Add(t.Spec.External.Term()))
	return &at
}
