// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// permissions let a service of early stopping read the trials of its namespace
// and write that one is stopped. Katib lets it do everything to trials.
func permissions(s *v1beta1.Suggestion) []client.Object {
	meta := metav1.ObjectMeta{Name: Name(s)}
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: *meta.DeepCopy()},
		&rbacv1.Role{ObjectMeta: *meta.DeepCopy(), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{v1beta1.Group}, Resources: []string{"trials"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{v1beta1.Group}, Resources: []string{"trials/status"}, Verbs: []string{"get", "patch", "update"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: *meta.DeepCopy(),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: meta.Name, Namespace: s.Namespace}},
		},
	}
}
