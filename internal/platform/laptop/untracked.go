// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"context"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission"
)

// untrackedName is the admission plugin's name in kube-apiserver's list.
const untrackedName = "DiwanUntracked"

// untracked is an admission plugin that creates what the cluster's own parts
// create in passing (Jobs, Pods, events, and what wings name) without managed fields. Nobody
// applies such objects, and to track who set which field of them took a tenth
// of the processor time of a trial and makes the objects larger. The API server
// does not track an object later that was created so; a server-side apply to
// one works as to an object from before tracking existed.
type untracked struct{ own, resources map[string]bool }

var _ admission.MutationInterface = untracked{}

// newUntracked spares what the users own create of the resources.
func newUntracked(resources []string, own ...string) admission.Factory {
	u := untracked{own: map[string]bool{}, resources: map[string]bool{}}
	for _, user := range own {
		u.own[user] = true
	}
	for _, resource := range resources {
		u.resources[resource] = true
	}
	return func(io.Reader) (admission.Interface, error) { return u, nil }
}

// Handles implements admission.Interface.
func (untracked) Handles(operation admission.Operation) bool { return operation == admission.Create }

// Admit implements admission.MutationInterface.
func (u untracked) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !u.resources[a.GetResource().Resource] || a.GetSubresource() != "" || a.GetUserInfo() == nil || !u.own[a.GetUserInfo().GetName()] {
		return nil
	}
	if object, err := meta.Accessor(a.GetObject()); err == nil {
		object.SetManagedFields(nil)
	}
	return nil
}
