// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"diwan.dev/diwan/internal/trialtemplate"
)

// mutatePod makes a Pod that a trial's run object is the ancestor of one of the
// trial's. Any other stays as it is.
func (c Config) mutatePod(ctx context.Context, req ctrladmission.Request) ctrladmission.Response {
	pod := &unstructured.Unstructured{}
	if err := json.Unmarshal(req.Object.Raw, &pod.Object); err != nil {
		return unreadable(err, nil)
	}
	trial, err := c.Ancestry.Trial(ctx, req.Namespace, pod)
	switch {
	case err != nil:
		return ctrladmission.Errored(http.StatusInternalServerError, err)
	case trial == nil:
		return ctrladmission.Allowed("")
	}
	lacks, err := trialtemplate.AdoptPod(pod, trial)
	if err != nil {
		return ctrladmission.Errored(http.StatusBadRequest, err)
	}
	answer := patched(req.Object.Raw, pod.Object)
	if lacks {
		answer = answer.WithWarnings(fmt.Sprintf("no metrics come from this Pod: it has no container %q, as primaryContainerName of trial %s says",
			trial.Spec.PrimaryContainerName, trial.Name))
	}
	return answer
}
