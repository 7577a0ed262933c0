// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/searchspace"
	"diwan.dev/diwan/internal/tuning/trialtemplate"
)

// mountCheckpoints lets a trial find its checkpoint, where its algorithm wants
// it to have one: the directory <experiment>/<trial>, as in Katib.
func mountCheckpoints(run *unstructured.Unstructured, e *v1beta1.Experiment, a *v1beta1.TrialAssignment) error {
	dir := searchspace.CheckpointDir(e.Spec.Algorithm)
	if dir == "" {
		return nil
	}
	c := trialtemplate.Checkpoints{
		Claim: searchspace.CheckpointClaim(e.Name, e.Spec.Algorithm),
		Path:  dir,
		Own:   path.Join(e.Name, a.Name),
	}
	for label, parent := range a.Labels {
		if searchspace.IsParent(label) {
			c.Parent = path.Join(e.Name, parent)
		}
	}
	if err := trialtemplate.MountCheckpoints(run, e.Spec.TrialTemplate.PrimaryContainerName, c); err != nil {
		return fmt.Errorf("cannot mount the checkpoints of trial %s: %w", a.Name, err)
	}
	return nil
}
