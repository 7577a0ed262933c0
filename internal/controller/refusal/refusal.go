// SPDX-License-Identifier: Apache-2.0

// Package refusal says what it means that the API server refuses to create an
// object, and how long to wait before asking again.
//
// A namespace's quota is no fault of what is created: there is room again when
// something else ends. Whatever needs room waits for it, and says so.
package refusal

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// quotaText is in every message about a ResourceQuota that has no room. The API
// server tells it in no other way.
const quotaText = "exceeded quota"

// ByQuota reports whether a creation was refused for want of room in a
// ResourceQuota.
func ByQuota(err error) bool {
	return apierrors.IsForbidden(err) && IsQuotaText(err.Error())
}

// IsQuotaText reports whether a message, as that of an event, says that a
// ResourceQuota has no room.
func IsQuotaText(message string) bool { return strings.Contains(message, quotaText) }

// ByPolicy reports whether a creation was refused by a rule that someone can
// change: by permissions, by what admission the cluster has, or by a quota.
func ByPolicy(err error) bool {
	return apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// How long what was refused waits before it asks again: an eighth of the time
// that it has waited already, within bounds.
const (
	least = time.Second
	most  = 30 * time.Second
	share = 8
)

// Patience is how long to wait after having waited so long in vain.
func Patience(waited time.Duration) time.Duration { return min(max(waited/share, least), most) }

// Frees reports whether a change of a ResourceQuota may have made room: of
// something less is used, or more is granted.
func Frees(before, after *corev1.ResourceQuota) bool {
	for name, hard := range after.Status.Hard {
		was, limited := before.Status.Hard[name]
		if limited && hard.Cmp(was) > 0 {
			return true
		}
		used, had := after.Status.Used[name], before.Status.Used[name]
		if used.Cmp(had) < 0 {
			return true
		}
	}
	return len(after.Status.Hard) < len(before.Status.Hard)
}
