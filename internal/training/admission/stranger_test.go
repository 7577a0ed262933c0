// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// house has every object, or none.
type house struct {
	client.Reader
	full bool
}

func (h house) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if !h.full {
		return fmt.Errorf("there is no %s", key)
	}
	into.SetName(key.Name)
	return nil
}

// TestStrangersLearnNothing asks, as anyone who reaches the port may, about a TrainJob
// whose runtime is in a namespace, and wants the same answer whether it is there or not.
func TestStrangersLearnNothing(t *testing.T) {
	t.Parallel()
	const job = `{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob","metadata":{"name":"j"},"spec":{"runtimeRef":{"kind":"TrainingRuntime","name":"r"}}}`
	var answers []string
	for _, full := range []bool{false, true} {
		request := ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{UID: "1", Namespace: "ns", Object: runtime.RawExtension{Raw: []byte(job)}}}
		text, err := json.Marshal(Handlers(Config{Reader: house{full: full}})[PathValidateTrainJob](t.Context(), request))
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, string(text))
	}
	if answers[0] != answers[1] {
		t.Errorf("the answer tells what is there:\n%s\n%s", answers[0], answers[1])
	}
}
