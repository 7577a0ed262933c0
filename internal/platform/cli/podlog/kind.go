// SPDX-License-Identifier: Apache-2.0

package podlog

import (
	"context"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind is a kind of object that runs Pods, or has trials that do.
type Kind struct {
	schema.GroupVersionKind
	// PodLabel names the object on its Pods.
	PodLabel string
	// RoleLabel and IndexLabel tell the Pods of one object apart; "" where they have no such labels.
	RoleLabel, IndexLabel string
	// Container is the one that does the work. "": the Pod's first, or the default that it names.
	Container string
	// Source, if set, says which Pods count where that is more than a label. following is whether the
	// log is to be followed.
	Source func(ctx context.Context, reader client.Reader, object types.NamespacedName, following bool) (*Source, error)
}

// Source is where a log comes from.
type Source struct {
	// Object is KIND/NAME of what has the Pods, and Label is what names it, by Name, on these.
	Object, Name, Label string
	// Primary are the labels of the Pods that count before others.
	Primary map[string]string
	// Container is the one that does the work.
	Container string
	// Why says what was chosen for the user; "" where nothing was.
	Why string
}

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// Kubernetes are the kinds of Kubernetes itself around those of domains, in the order in which users
// are told of them.
func Kubernetes(domains ...Kind) Kinds {
	return slices.Concat(
		Kinds{{GroupVersionKind: podKind}}, domains,
		Kinds{{GroupVersionKind: batchv1.SchemeGroupVersion.WithKind("Job"), PodLabel: batchv1.JobNameLabel}},
	)
}

func (k Kind) name() string { return strings.ToLower(k.Kind) }

// Kinds are those whose logs can be asked for.
type Kinds []Kind

// Names are those of the kinds, in lower case, as KIND/NAME names them.
func (kinds Kinds) Names() []string {
	var names []string
	for _, k := range kinds {
		if !slices.Contains(names, k.name()) {
			names = append(names, k.name())
		}
	}
	return names
}
