// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// Quota makes a ResourceQuota named quota, and returns it when it is enforced: an API
// server admits objects uncounted until it has seen the quota with its status. No
// Secret is admitted any more, which is how this can be seen.
func Quota(t testing.TB, client kubernetes.Interface, namespace string, hard corev1.ResourceList) *corev1.ResourceQuota {
	t.Helper()
	quotas := client.CoreV1().ResourceQuotas(namespace)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota"}}
	quota.Spec.Hard = hard.DeepCopy()
	quota.Spec.Hard[corev1.ResourceSecrets] = resource.MustParse("0")
	if _, err := quotas.Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatalf("cannot create a quota: %v", err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "beyond-the-quota"}}
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (counted bool, err error) {
		if quota, err = quotas.Get(ctx, quota.Name, metav1.GetOptions{}); err != nil {
			return false, err
		}
		_, last = client.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return len(quota.Status.Used) == len(quota.Spec.Hard) && apierrors.IsForbidden(last) && strings.Contains(last.Error(), "exceeded quota"), nil
	})
	if err != nil {
		t.Fatalf("the quota is not enforced (%v): it says %+v, and a Secret beyond it gets %v", err, quota.Status, last)
	}
	return quota
}
