// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/admission"
)

// owners are objects by name, each with what controls it; they count how often
// they are read.
type owners struct {
	client.Reader
	of    map[string]*metav1.OwnerReference
	reads int
}

func (o *owners) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	o.reads++
	owner, ok := o.of[key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	into.SetName(key.Name)
	into.SetUID(types.UID("uid-" + key.Name))
	if owner != nil {
		into.SetOwnerReferences([]metav1.OwnerReference{*owner})
	}
	return nil
}

func controller(apiVersion, kind, name string) *metav1.OwnerReference {
	return &metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID("uid-" + name), Controller: ptr.To(true)}
}

// TestAncestry finds the trials of Pods, and counts what is read for them.
func TestAncestry(t *testing.T) {
	t.Parallel()
	trial := controller("kubeflow.org/v1beta1", v1beta1.TrialKind, "trial")
	all := map[string]*metav1.OwnerReference{
		"trial":   nil,
		"alone":   nil,
		"set":     trial,
		"job":     controller("jobset.x-k8s.io/v1alpha2", "JobSet", "set"),
		"circle":  controller("batch/v1", "Job", "circle"),
		"orphan":  controller("batch/v1", "Job", "gone"),
		"another": {APIVersion: "batch/v1", Kind: "Job", Name: "alone", UID: "of one before", Controller: ptr.To(true)},
	}
	cases := map[string]struct {
		reason      string
		owner       *metav1.OwnerReference
		found       bool
		first, then int // reads for the first Pod, and for the next one
		later       int // and for one after the memory's time
	}{
		"None":    {"A Pod that nothing controls is no trial's", nil, false, 0, 0, 0},
		"Alone":   {"Neither are those of a job of a user", controller("kubeflow.org/v1", "PyTorchJob", "alone"), false, 1, 0, 1},
		"Trial":   {"A trial may control the Pod itself, and is read as it is now", trial, true, 1, 1, 1},
		"Far":     {"Or what controls the Pod", controller("batch/v1", "Job", "job"), true, 3, 1, 3},
		"Gone":    {"What is gone may come, and is not remembered", controller("batch/v1", "Job", "gone"), false, 1, 1, 1},
		"Orphan":  {"Wherever it is", controller("batch/v1", "Job", "orphan"), false, 2, 1, 2},
		"Another": {"One of the same name is another", all["another"], false, 1, 1, 1},
		"Circle":  {"A circle has an end", controller("batch/v1", "Job", "circle"), false, 1, 0, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader := &owners{of: all}
			now := clocktesting.NewFakeClock(time.Unix(0, 0))
			ancestry := admission.NewAncestry(reader, now)
			pod := &metav1.ObjectMeta{}
			if tc.owner != nil {
				pod.OwnerReferences = []metav1.OwnerReference{*tc.owner}
			}
			for i, want := range []int{tc.first, tc.then, tc.later} {
				if i == 2 {
					now.Step(time.Minute)
				}
				reader.reads = 0
				got, err := ancestry.Trial(t.Context(), "default", pod)
				if err != nil || (got != nil) != tc.found || reader.reads != want {
					t.Errorf("%s: Pod %d has the trial %v after %d reads (%v), want one: %v, after %d", tc.reason, i, got, reader.reads, err, tc.found, want)
				}
			}
		})
	}
}

// TestNoAncestry holds that without a reader no Pod is a trial's.
func TestNoAncestry(t *testing.T) {
	t.Parallel()
	var none *admission.Ancestry
	pod := &metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{*controller("batch/v1", "Job", "job")}}
	if trial, err := none.Trial(t.Context(), "default", pod); trial != nil || err != nil {
		t.Errorf("the Pod has the trial %v (%v)", trial, err)
	}
}
