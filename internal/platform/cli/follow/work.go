// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/internal/platform/cli/progress"
)

// NewWork returns the model of an object, as the cluster has it, that is followed from now on.
// created is whether it did not exist before.
func (kinds Kinds) NewWork(object *unstructured.Unstructured, created bool, now time.Time) (*progress.Work, error) {
	id := progress.ID{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
	k := kinds.Named(id.Kind)
	if k == nil {
		return nil, fmt.Errorf("cannot follow %s %s/%s: objects of this kind do not complete", id.Kind, id.Namespace, id.Name)
	}
	typed := k.Object.DeepCopyObject().(client.Object)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return nil, fmt.Errorf("cannot read %s %s/%s from the cluster: %w", id.Kind, id.Namespace, id.Name, err)
	}
	var objective progress.Objective
	if k.Search != nil {
		objective = k.Search.Objective(typed)
	}
	work := progress.NewWork(id, k.Unit, objective, created, now)
	work.SetStatus(k.Status(typed), now)
	return work, nil
}
