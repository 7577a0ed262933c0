// SPDX-License-Identifier: Apache-2.0

// Package laptop is what tuning adds to a laptop: the node collects the metrics of
// trials, whose programs report at an address of their own.
package laptop

import (
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/internal/platform/laptop"
	"diwan.dev/diwan/internal/platform/operator"
	"diwan.dev/diwan/internal/tuning"
	"diwan.dev/diwan/internal/tuning/collector"
	"diwan.dev/diwan/internal/tuning/collector/injection"
	"diwan.dev/diwan/internal/tuning/collector/nodeobserver"
	"diwan.dev/diwan/internal/tuning/dbmanager/access"
)

// New returns the wing. With a collector the Pods of trials get one, as on a cluster.
func New(lent *laptop.Lent, collectors *injection.Config) laptop.Wing {
	t := tuning.New(tuning.Options{
		Store: lent.Store, Dial: lent.DialService, Collector: collectors,
		Owner: lent.Owner, Local: access.SameUser,
	})
	domain := t.Domain()
	wing := laptop.Wing{
		Name:   tuning.Name,
		Domain: &domain,
		Objects: []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name:   operator.DefaultNamespace,
			Labels: map[string]string{"katib.kubeflow.org/metrics-collector-injection": "enabled"},
		}}},
		Untracked: []string{"suggestions", "trials"},
		Handler: func(next http.Handler, kube kubernetes.Interface) http.Handler {
			return collectorLogs{next: next, kube: kube}
		},
		Notice: func(ctx context.Context) (string, error) {
			if lent.Memory {
				return "", nil // a store that keeps nothing has lost nothing
			}
			return notice(ctx, t.Trials(), lent.Store)
		},
	}
	if collectors == nil {
		config := collector.DefaultConfig()
		config.Dial = lent.DialPod
		wing.Observers = nodeobserver.For(collector.New(nodeobserver.Trials(t.Trials()), lent.Store, config))
	}
	return wing
}
