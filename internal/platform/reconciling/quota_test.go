// SPDX-License-Identifier: Apache-2.0

package reconciling_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"diwan.dev/diwan/internal/platform/reconciling"
)

func TestKinds(t *testing.T) {
	t.Parallel()
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	forbidden := func(text string) error { return apierrors.NewForbidden(jobs, "j", errors.New(text)) }
	ending := apierrors.NewForbidden(jobs, "j", errors.New("it is being terminated"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, c := range map[string]struct {
		reason        string
		err           error
		quota, policy bool
	}{
		"Quota":    {"the API server's own words", forbidden("exceeded quota: q, requested: count/jobs.batch=1, used: count/jobs.batch=2, limited: count/jobs.batch=2"), true, true},
		"Wrapped":  {"whoever passes it on", fmt.Errorf("cannot create: %w", forbidden("exceeded quota: q")), true, true},
		"Rights":   {"permissions can be given", forbidden(`User "u" cannot create resource "jobs"`), false, true},
		"Ending":   {"a namespace that goes takes nothing", ending, false, false},
		"Invalid":  {"a quota's name proves nothing", apierrors.NewBadRequest("exceeded quota"), false, false},
		"Nothing":  {"no error", nil, false, false},
		"NotFound": {"another error", apierrors.NewNotFound(jobs, "j"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if q, p := reconciling.ExceedsQuota(c.err), reconciling.Forbidden(c.err); q != c.quota || p != c.policy {
				t.Errorf("%s: quota %v, policy %v; want %v, %v", c.reason, q, p, c.quota, c.policy)
			}
		})
	}
}

func TestPatience(t *testing.T) {
	t.Parallel()
	for waited, want := range map[time.Duration]time.Duration{-time.Hour: time.Second, 0: time.Second, time.Minute: 7500 * time.Millisecond, time.Hour: 30 * time.Second} {
		if got := reconciling.QuotaBackoff(waited); got != want {
			t.Errorf("QuotaBackoff(%s) = %s, want %s", waited, got, want)
		}
	}
}

func TestFrees(t *testing.T) {
	t.Parallel()
	quota := func(hard, used string) *corev1.ResourceQuota {
		q := &corev1.ResourceQuota{}
		list := func(text string) corev1.ResourceList {
			if text == "" {
				return nil
			}
			return corev1.ResourceList{"pods": resource.MustParse(text)}
		}
		q.Status.Hard, q.Status.Used = list(hard), list(used)
		return q
	}
	for _, c := range []struct {
		reason        string
		before, after *corev1.ResourceQuota
		want          bool
	}{
		{"something ended", quota("2", "2"), quota("2", "1"), true},
		{"more is granted", quota("2", "2"), quota("3", "2"), true},
		{"it is no longer limited", quota("2", "2"), quota("", ""), true},
		{"something began", quota("2", "1"), quota("2", "2"), false},
		{"it is limited now", quota("", ""), quota("2", "1"), false},
		{"nothing changed", quota("2", "2"), quota("2", "2"), false},
	} {
		if got := reconciling.QuotaFreed(c.before, c.after); got != c.want {
			t.Errorf("%s: %v", c.reason, got)
		}
	}
}
