// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	manager "diwan.dev/diwan/api/manager/v1beta1"
)

func TestSetTrialStatus(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := kubeflow.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	trial := func(name string, set kubeflow.ConditionType) *kubeflow.Trial {
		o := &kubeflow.Trial{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		o.Status.Conditions.Set(metav1.Now(), set, corev1.ConditionTrue, "Test", "")
		return o
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&kubeflow.Trial{}).
		WithObjects(trial("runs", kubeflow.ConditionRunning), trial("over", kubeflow.ConditionSucceeded)).Build()
	s := &Server{Trials: &Trials{Client: api, Namespace: "ns"}}
	for name, want := range map[string]codes.Code{"runs": codes.OK, "over": codes.OK, "none": codes.NotFound} {
		if _, err := s.SetTrialStatus(t.Context(), &manager.SetTrialStatusRequest{TrialName: name}); status.Code(err) != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	for name, want := range map[string]bool{"runs": true, "over": false} {
		o := &kubeflow.Trial{}
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, o); err != nil {
			t.Fatal(err)
		}
		if o.IsStopping() != want {
			t.Errorf("trial %s is being stopped: %t", name, o.IsStopping())
		}
	}
	if _, err := (&Server{}).SetTrialStatus(t.Context(), &manager.SetTrialStatusRequest{TrialName: "runs"}); status.Code(err) != codes.Unimplemented {
		t.Errorf("without a cluster: %v", err)
	}
}
