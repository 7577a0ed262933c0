// SPDX-License-Identifier: Apache-2.0

package reconciling

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// quotaText is in every message about an exceeded ResourceQuota. The API server
// reports it in no other way.
const quotaText = "exceeded quota"

// ExceedsQuota reports whether a creation was rejected because it exceeds a
// ResourceQuota.
func ExceedsQuota(err error) bool {
	return apierrors.IsForbidden(err) && IsQuotaMessage(err.Error())
}

// IsQuotaMessage reports whether a message, such as an event's, says that a
// ResourceQuota is exceeded.
func IsQuotaMessage(message string) bool { return strings.Contains(message, quotaText) }

// Forbidden reports whether a creation was refused by a rule that someone can
// change: by permissions, by what admission the cluster has, or by a quota.
func Forbidden(err error) bool {
	return apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// The delay before a rejected creation is retried: an eighth of the time
// waited so far, within bounds.
const (
	least = time.Second
	most  = 30 * time.Second
	share = 8
)

// QuotaBackoff is how long to wait after having waited so long in vain.
func QuotaBackoff(waited time.Duration) time.Duration { return min(max(waited/share, least), most) }

// QuotaFreed reports whether a change of a ResourceQuota may have made room: of
// something less is used, or more is granted.
func QuotaFreed(before, after *corev1.ResourceQuota) bool {
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
