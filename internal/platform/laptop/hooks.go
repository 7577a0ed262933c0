// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	schedulingv1 "k8s.io/kubernetes/pkg/apis/scheduling/v1"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// The hooks that write upstream's default roles and priority classes, under
// names of ours.
const (
	rolesHook           = "diwan/bootstrap-roles"
	priorityClassesHook = "diwan/bootstrap-priority-classes"
)

// hookRetry is how long a hook that failed waits before it tries again.
const hookRetry = 50 * time.Millisecond

// disableDefaults keeps kube-apiserver from writing its default objects by
// itself: it looks for them a second after the start, one request each, and ends
// the process if they are not written within 30 s, as when the machine is busy,
// or the server is stopped meanwhile.
func disableDefaults(config *app.Config) {
	config.KubeAPIs.ControlPlane.Generic.DisabledPostStartHooks.Insert(rbacrest.PostStartHookName, schedulingrest.PostStartHookName)
}

// writeDefaults has the server write its default objects as soon as it runs,
// however long that takes. kube is a client of that server.
func writeDefaults(server *genericapiserver.GenericAPIServer, kube kubernetes.Interface) error {
	return errors.Join(
		server.AddPostStartHook(rolesHook, insist(rolesHook, func(ctx context.Context) error { return ensureRoles(ctx, kube) })),
		server.AddPostStartHook(priorityClassesHook, insist(priorityClassesHook, func(ctx context.Context) error { return ensurePriorityClasses(ctx, kube) })),
	)
}

// insist returns a hook that does something until that succeeds or the server
// stops, and never fails.
func insist(name string, do func(context.Context) error) genericapiserver.PostStartHookFunc {
	return func(c genericapiserver.PostStartHookContext) error {
		for {
			err := do(c)
			if err == nil || c.Err() != nil {
				return nil
			}
			klog.FromContext(c).Error(err, "Trying again", "hook", name)
			select {
			case <-c.Done():
			case <-time.After(hookRetry):
			}
		}
	}
}

// ensurePriorityClasses creates upstream's priority classes that are missing.
func ensurePriorityClasses(ctx context.Context, kube kubernetes.Interface) error {
	classes := kube.SchedulingV1().PriorityClasses()
	list, err := classes.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("cannot list priority classes: %w", err)
	}
	there := map[string]bool{}
	for i := range list.Items {
		there[list.Items[i].Name] = true
	}
	for _, class := range schedulingv1.SystemPriorityClasses() {
		if there[class.Name] {
			continue
		}
		if _, err := classes.Create(ctx, class, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("cannot create priority class %s: %w", class.Name, err)
		}
	}
	return nil
}

// rolesAtOnce is how many roles are written at a time: etcd stores together what
// comes together.
const rolesAtOnce = 16

// ensureRoles creates upstream's roles and bindings, and adds to those that exist
// what they lack. Where all are there, it takes four lists.
func ensureRoles(ctx context.Context, kube kubernetes.Interface) error {
	rbac, namespaces, options := kube.RbacV1(), kube.CoreV1().Namespaces(), metav1.ListOptions{}
	clusterRoles, err1 := rbac.ClusterRoles().List(ctx, options)
	roles, err2 := rbac.Roles(metav1.NamespaceAll).List(ctx, options)
	clusterBindings, err3 := rbac.ClusterRoleBindings().List(ctx, options)
	bindings, err4 := rbac.RoleBindings(metav1.NamespaceAll).List(ctx, options)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return fmt.Errorf("cannot list roles: %w", err)
	}
	toClusterRoles := rolesOf{reconciliation.ClusterRoleModifier{Client: rbac.ClusterRoles()}, index(clusterRoles.Items, clusterRole)}
	toRoles := rolesOf{reconciliation.RoleModifier{Client: rbac, NamespaceClient: namespaces}, index(roles.Items, role)}
	toClusterBindings := bindingsOf{reconciliation.ClusterRoleBindingClientAdapter{Client: rbac.ClusterRoleBindings()}, index(clusterBindings.Items, clusterBinding)}
	toBindings := bindingsOf{reconciliation.RoleBindingClientAdapter{Client: rbac, NamespaceClient: namespaces}, index(bindings.Items, binding)}

	var writes errgroup.Group
	writes.SetLimit(rolesAtOnce)
	for _, r := range append(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()...) {
		writes.Go(func() error { return toClusterRoles.ensure(clusterRole(&r)) })
	}
	for _, ofNamespace := range bootstrappolicy.NamespaceRoles() {
		for _, r := range ofNamespace {
			writes.Go(func() error { return toRoles.ensure(role(&r)) })
		}
	}
	for _, b := range append(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()...) {
		writes.Go(func() error { return toClusterBindings.ensure(clusterBinding(&b)) })
	}
	for _, ofNamespace := range bootstrappolicy.NamespaceRoleBindings() {
		for _, b := range ofNamespace {
			writes.Go(func() error { return toBindings.ensure(binding(&b)) })
		}
	}
	return writes.Wait()
}

func clusterRole(r *rbacv1.ClusterRole) reconciliation.RuleOwner {
	return reconciliation.ClusterRoleRuleOwner{ClusterRole: r}
}

func role(r *rbacv1.Role) reconciliation.RuleOwner { return reconciliation.RoleRuleOwner{Role: r} }

func clusterBinding(b *rbacv1.ClusterRoleBinding) reconciliation.RoleBinding {
	return reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: b}
}

func binding(b *rbacv1.RoleBinding) reconciliation.RoleBinding {
	return reconciliation.RoleBindingAdapter{RoleBinding: b}
}

// known are objects that a list had.
type known[O any] map[types.NamespacedName]O

func index[T any, O interface {
	GetNamespace() string
	GetName() string
}](items []T, adapt func(*T) O) known[O] {
	k := known[O]{}
	for i := range items {
		o := adapt(&items[i])
		k[types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}] = o
	}
	return k
}

func (k known[O]) get(namespace, name string) (O, error) {
	o, ok := k[types.NamespacedName{Namespace: namespace, Name: name}]
	if !ok {
		return o, apierrors.NewNotFound(rbacv1.Resource("role"), name)
	}
	return o, nil
}

// rolesOf writes roles, and has read those that exist.
type rolesOf struct {
	reconciliation.RuleOwnerModifier
	known known[reconciliation.RuleOwner]
}

// Get implements reconciliation.RuleOwnerModifier.
func (r rolesOf) Get(namespace, name string) (reconciliation.RuleOwner, error) {
	return r.known.get(namespace, name)
}

func (r rolesOf) ensure(role reconciliation.RuleOwner) error {
	if _, err := (&reconciliation.ReconcileRoleOptions{Role: role, Confirm: true, Client: r}).Run(); err != nil {
		return fmt.Errorf("cannot write role %s: %w", role.GetName(), err)
	}
	return nil
}

// bindingsOf writes bindings, and has read those that exist.
type bindingsOf struct {
	reconciliation.RoleBindingModifier
	known known[reconciliation.RoleBinding]
}

// Get implements reconciliation.RoleBindingModifier.
func (b bindingsOf) Get(namespace, name string) (reconciliation.RoleBinding, error) {
	return b.known.get(namespace, name)
}

func (b bindingsOf) ensure(binding reconciliation.RoleBinding) error {
	if _, err := (&reconciliation.ReconcileRoleBindingOptions{RoleBinding: binding, Confirm: true, Client: b}).Run(); err != nil {
		return fmt.Errorf("cannot write role binding %s: %w", binding.GetName(), err)
	}
	return nil
}
