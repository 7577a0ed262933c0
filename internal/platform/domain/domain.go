// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/internal/platform/admission"
)

// Domain is one area of what Diwan does.
type Domain struct {
	// Name is the domain's directory below internal. Required.
	Name string
	// AddToScheme registers the domain's Go types. Nil: it has none.
	AddToScheme func(*runtime.Scheme) error
	// Kinds are those that the domain reconciles, and others that it makes available to
	// trials.
	Kinds []Kind
	// Rules are RBAC rules that do not belong to a single kind.
	Rules []Rule
	// Webhooks must each be answered by a handler that SetUp registers.
	Webhooks []admission.Webhook
	// Cache restricts which objects the domain's cache holds, keyed by an empty object
	// of the type. Default: all objects of the types that are read.
	Cache map[client.Object]ctrlcache.ByObject
	// Slim removes unused data from objects that enter the cache. Default: their managed
	// fields. Such objects must not be written back whole.
	Slim cache.TransformFunc
	// SetUp adds the domain's reconcilers to the Host's manager and registers its webhook
	// handlers and servers. Required.
	SetUp func(*Host) error
}

// Kind is a Kubernetes resource kind.
type Kind struct {
	schema.GroupVersionKind
	// Plural is the resource's name. Required.
	Plural string
	// Object is an empty object of the kind's Go type. Nil: it has no Go type here.
	Object client.Object
	// Without is the name, usually the plural, with which `diwan operator --without` leaves
	// the kind to another controller of the cluster. "": it cannot be left out.
	Without string
	// Rules are the RBAC rules that the kind's reconciler needs.
	Rules []Rule
	// Users is what the chart's user roles allow with the kind.
	Users Users
	// Trial lets trials run objects of the kind. Nil: they cannot.
	Trial *Trial
	// PodLabel is the label with which a Pod names the object of this kind that it
	// belongs to. "": there is no such label.
	PodLabel string
}

// Rule is an RBAC rule.
type Rule struct {
	rbacv1.PolicyRule
	// Why is the comment above the rule in the chart.
	Why string
	// When is a template condition under which the chart grants the rule, such as
	// `.Values.collector.enabled`. "": always.
	When string
}

// Allow returns a Rule for verbs on resources of an API group.
func Allow(group string, verbs []string, resources ...string) Rule {
	return Rule{PolicyRule: rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}}
}

// Because returns the rule with a comment that explains it.
func (r Rule) Because(why string) Rule { r.Why = why; return r }

// If returns the rule with a template condition.
func (r Rule) If(condition string) Rule { r.When = condition; return r }

// Users is what users of a namespace may do with objects of a kind.
type Users int

// Permissions of users.
const (
	// UsersNone is for kinds that are cluster-scoped or internal.
	UsersNone Users = iota
	// UsersEdit grants reading to the role view, and writing to edit and admin.
	UsersEdit
	// UsersEditWithStatus is UsersEdit, and grants view the status subresource.
	UsersEditWithStatus
)

// Trial has the defaults of a trial template for a kind of run object.
type Trial struct {
	// SuccessCondition and FailureCondition are queries as in a TrialTemplate.
	SuccessCondition, FailureCondition string
	// PrimaryPodLabels select the Pod that reports metrics. Empty: all of its Pods.
	PrimaryPodLabels map[string]string
}

// NewScheme returns a scheme with the types of Kubernetes and of domains.
func NewScheme(domains ...Domain) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("cannot register the kinds of Kubernetes: %w", err)
	}
	for _, d := range domains {
		if d.AddToScheme == nil {
			continue
		}
		if err := d.AddToScheme(scheme); err != nil {
			return nil, fmt.Errorf("cannot register the kinds of %s: %w", d.Name, err)
		}
	}
	return scheme, nil
}

// Kinds returns the kinds of all domains.
func Kinds(domains ...Domain) []Kind {
	var kinds []Kind
	for _, d := range domains {
		kinds = append(kinds, d.Kinds...)
	}
	return kinds
}

// PodLabels returns the distinct PodLabels of kinds.
func PodLabels(kinds []Kind) []string {
	var labels []string
	seen := map[string]bool{}
	for _, k := range kinds {
		if k.PodLabel != "" && !seen[k.PodLabel] {
			seen[k.PodLabel] = true
			labels = append(labels, k.PodLabel)
		}
	}
	return labels
}
