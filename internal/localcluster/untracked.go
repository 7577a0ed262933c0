// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission"
)

// untrackedName is the admission plugin's name in kube-apiserver's list.
const untrackedName = "DiwanUntracked"

// untracked is an admission plugin that creates what the cluster's own parts
// create in passing (Jobs, Pods, Suggestions, Trials, events) without managed fields. Nobody
// applies such objects, and to track who set which field of them took a tenth
// of the processor time of a trial and makes the objects larger. The API server
// does not track an object later that was created so; a server-side apply to
// one works as to an object from before tracking existed.
type untracked struct{ own map[string]bool }

var _ admission.MutationInterface = untracked{}

// newUntracked spares what the users own create.
func newUntracked(own ...string) admission.Factory {
	users := map[string]bool{}
	for _, user := range own {
		users[user] = true
	}
	return func(io.Reader) (admission.Interface, error) { return untracked{users}, nil }
}

// Handles implements admission.Interface.
func (untracked) Handles(operation admission.Operation) bool { return operation == admission.Create }

// Admit implements admission.MutationInterface.
func (u untracked) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	switch a.GetResource().Resource {
	case "jobs", "pods", "suggestions", "trials", "events":
	default:
		return nil
	}
	if a.GetSubresource() != "" || a.GetUserInfo() == nil || !u.own[a.GetUserInfo().GetName()] {
		return nil
	}
	if object, err := meta.Accessor(a.GetObject()); err == nil {
		object.SetManagedFields(nil)
	}
	return nil
}
