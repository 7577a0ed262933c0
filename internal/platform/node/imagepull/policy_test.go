// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestNext(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		policy  corev1.PullPolicy
		present bool
		want    step
	}{
		{corev1.PullAlways, true, pull},
		{corev1.PullAlways, false, pull},
		{corev1.PullIfNotPresent, true, use},
		{corev1.PullIfNotPresent, false, pull},
		{corev1.PullNever, true, use},
		{corev1.PullNever, false, refuse},
		{"", true, use},
		{"", false, pull},
	} {
		if got := next(tc.policy, tc.present); got != tc.want {
			t.Errorf("%q, present %v: %v, want %v", tc.policy, tc.present, got, tc.want)
		}
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	var b backoff
	now := time.Unix(1e9, 0)
	failure := &Error{Reason: "ErrImagePull", Err: errors.New("it is not there")}
	if err, _ := b.waiting("a", now); err != nil {
		t.Fatal("it waits before anything failed")
	}
	for i, want := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
		if got := b.failed("a", now, failure); got != want*time.Second {
			t.Errorf("pause %d is %v, want %vs", i, got, want)
		}
		if err, left := b.waiting("a", now.Add(time.Second)); err != failure || left != want*time.Second-time.Second {
			t.Errorf("after failure %d it waits %v for %v", i, left, err)
		}
		if err, _ := b.waiting("b", now); err != nil {
			t.Error("another Pod waits, too")
		}
		now = now.Add(want * time.Second)
		if err, _ := b.waiting("a", now); err != nil {
			t.Errorf("pause %d does not end", i)
		}
	}
	b.succeeded("a")
	if got := b.failed("a", now, failure); got != 10*time.Second {
		t.Errorf("after a success the pause is %v", got)
	}
	b.failed("b", now.Add(time.Hour), failure)
	if len(b.attempts) != 1 {
		t.Errorf("%d failures are remembered, want the last", len(b.attempts))
	}
}
