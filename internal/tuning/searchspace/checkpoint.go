// SPDX-License-Identifier: Apache-2.0

package searchspace

import (
	"strings"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// checkpointSetting is the setting that names the directory in which a trial
// finds its checkpoint.
const checkpointSetting = "suggestion_trial_dir"

// CheckpointDir returns where the trials of an algorithm keep their
// checkpoints, "" where they have none.
func CheckpointDir(a *v1beta1.AlgorithmSpec) string {
	if a == nil {
		return ""
	}
	return Settings(a.AlgorithmSettings)[checkpointSetting]
}

// CheckpointClaim returns the name of the PersistentVolumeClaim of an
// experiment's checkpoints, which is Katib's.
func CheckpointClaim(experiment string, a *v1beta1.AlgorithmSpec) string {
	return experiment + "-" + a.AlgorithmName
}

// IsParent reports whether a suggestion's label refers to the one that it goes
// on from, as those of pbt, hyperband and asha do.
func IsParent(label string) bool { return strings.HasSuffix(label, "/parent") }
