// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/admission"
	"diwan.dev/diwan/internal/tuning/trialtemplate"
)

// mutatePod makes a Pod that a trial's run object is the ancestor of one of the
// trial's, and gives a Pod of a trial a collector. Any other stays as it is.
func (c Config) mutatePod(ctx context.Context, req ctrladmission.Request) ctrladmission.Response {
	pod := &unstructured.Unstructured{}
	if err := json.Unmarshal(req.Object.Raw, &pod.Object); err != nil {
		return admission.Unreadable(err, nil)
	}
	trial, err := c.Ancestry.Trial(ctx, req.Namespace, pod)
	switch {
	case err != nil:
		return ctrladmission.Errored(http.StatusInternalServerError, err)
	case trial == nil:
		return ctrladmission.Allowed("")
	case pod.GetLabels()[v1beta1.LabelTrial] != "": // it was made as the trial's
		return c.collect(ctx, req.Namespace, req.Object.Raw, trial, ctrladmission.Allowed(""))
	}
	lacks, err := trialtemplate.AdoptPod(pod, trial)
	if err != nil {
		return ctrladmission.Errored(http.StatusBadRequest, err)
	}
	answer := admission.Patched(req.Object.Raw, pod.Object)
	if lacks {
		answer = answer.WithWarnings(fmt.Sprintf("no metrics come from this Pod: it has no container %q, as primaryContainerName of trial %s says",
			trial.Spec.PrimaryContainerName, trial.Name))
	}
	adopted, err := json.Marshal(pod.Object)
	if err != nil {
		return ctrladmission.Errored(http.StatusInternalServerError, err)
	}
	return c.collect(ctx, req.Namespace, adopted, trial, answer)
}

// collect adds to an answer what gives a Pod of a trial a collector. What the
// Pod has that this program does not know stays as it is.
func (c Config) collect(ctx context.Context, namespace string, raw []byte, trial *v1beta1.Trial, answer ctrladmission.Response) ctrladmission.Response {
	if trial == nil || c.Collect == nil {
		return answer
	}
	pod := &corev1.Pod{}
	if _, err := admission.Decode(raw, pod); err != nil {
		return admission.Unreadable(err, nil)
	}
	before, err := json.Marshal(pod)
	if err != nil {
		return ctrladmission.Errored(http.StatusInternalServerError, err)
	}
	own := pod.Namespace
	pod.Namespace = namespace // a request need not say it twice
	if err := c.Collect(ctx, pod, trial); err != nil {
		return ctrladmission.Errored(http.StatusUnprocessableEntity, err)
	}
	pod.Namespace = own
	more := admission.Patched(before, pod)
	if !more.Allowed {
		return more
	}
	answer.Patches = append(answer.Patches, more.Patches...)
	return answer
}
