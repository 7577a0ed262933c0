// SPDX-License-Identifier: Apache-2.0

package metricsapi

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/metrics/pkg/apis/metrics"
	v1 "k8s.io/metrics/pkg/apis/metrics/v1"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// Services register the group's versions, as served by the API server itself, for
// clients that read the plain list of groups.
func Services() []*apiregistrationv1.APIService {
	var all []*apiregistrationv1.APIService
	for i, version := range []string{v1beta1.SchemeGroupVersion.Version, v1.SchemeGroupVersion.Version} {
		all = append(all, &apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: version + "." + metrics.GroupName},
			Spec: apiregistrationv1.APIServiceSpec{
				Group: metrics.GroupName, Version: version, GroupPriorityMinimum: 100, VersionPriority: int32(100 + i),
			},
		})
	}
	return all
}

// Reader is the role that lets everyone who may view Pods see their usage,
// named as in metrics-server.
func Reader() *rbacv1.ClusterRole {
	const aggregate = "rbac.authorization.k8s.io/aggregate-to-"
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "system:aggregated-metrics-reader",
			Labels: map[string]string{aggregate + "view": "true", aggregate + "edit": "true", aggregate + "admin": "true"},
		},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{metrics.GroupName}, Resources: []string{"pods", "nodes"}, Verbs: []string{"get", "list"}}},
	}
}
