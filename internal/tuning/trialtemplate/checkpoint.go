// SPDX-License-Identifier: Apache-2.0

package trialtemplate

import (
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Checkpoints is where a trial keeps its checkpoints, from which later trials
// continue, as in population based training.
type Checkpoints struct {
	// Claim is the PersistentVolumeClaim of the volume that the trials share.
	Claim string
	// Path is where the trial's primary container finds its own directory.
	Path string
	// Own is the trial's directory on the volume, and Parent, if not empty, the
	// directory of the trial whose checkpoint it starts with.
	Own, Parent string
}

// The volume and the init container of checkpoints, and where that has it. The
// volume is named as in Katib.
const (
	checkpointVolume    = "suggestion-volume"
	checkpointContainer = "checkpoint"
	checkpointRoot      = "/var/run/diwan/checkpoints"
)

// begin makes the trial's directory, with a copy of its parent's, unless a Pod
// of the trial did before. It is moved into place when it is complete.
const begin = `cd "$1" || exit
if [ -d "$2" ]; then exit; fi
rm -rf "$2.new"
mkdir -p "$2.new" || exit
if [ -n "$3" ] && [ -d "$3" ]; then cp -R -p "$3/." "$2.new/" || exit; fi
mv "$2.new" "$2"`

// MountCheckpoints adds the checkpoint volume to a batch Job. An init container
// with the primary container's image, which needs a shell, creates the trial's
// directory. Other objects are left alone.
func MountCheckpoints(run *unstructured.Unstructured, primary string, c Checkpoints) error {
	if !isBatchJob(run) {
		return nil
	}
	pod, err := child(run.Object, "spec", "template", "spec")
	if err != nil {
		return err
	}
	container, err := containerNamed(pod, primary)
	if err != nil {
		return err
	}
	addTo(pod, "volumes", map[string]any{"name": checkpointVolume, "persistentVolumeClaim": map[string]any{"claimName": c.Claim}})
	addTo(container, "volumeMounts", map[string]any{"name": checkpointVolume, "mountPath": path.Clean(c.Path), "subPath": c.Own})
	first := map[string]any{
		"name":         checkpointContainer,
		"image":        container["image"],
		"command":      []any{"sh", "-c", begin, "sh", checkpointRoot, c.Own, c.Parent},
		"volumeMounts": []any{map[string]any{"name": checkpointVolume, "mountPath": checkpointRoot}},
	}
	for _, field := range []string{"imagePullPolicy", "securityContext"} {
		if v, ok := container[field]; ok {
			first[field] = v
		}
	}
	addTo(pod, "initContainers", first)
	return nil
}

func addTo(object map[string]any, list string, item map[string]any) {
	items, _ := object[list].([]any)
	object[list] = append(items[:len(items):len(items)], item)
}
