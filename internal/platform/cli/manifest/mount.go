// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
)

// mountName is the name of the volume with the manifest's directory.
const mountName = "manifest-directory"

// MountDirectory mounts an absolute directory of the host at its own path in every container of
// the Pod templates of an object, which are those of [SetWorkingDirectory], so that programs
// beside a manifest are found inside an image. Containers start there unless they name another
// directory. What has a volume of that name, or a mount at that path, keeps it.
//
// A TrainJob has no Pod templates, so an object with one is an error, and is left as it was.
func MountDirectory(object map[string]any, dir string) error {
	t := templatesIn(object)
	if len(t.trainJobs) > 0 {
		return fmt.Errorf("cannot mount %s in a TrainJob, whose Pod templates are those of its runtime: mount it by a hostPath volume in spec.runtimePatches", dir)
	}
	var errs []error
	for _, pod := range t.pods {
		errs = append(errs, mount(pod, dir))
	}
	return errors.Join(errs...)
}

// mount adds the volume to a Pod or a Pod template.
func mount(pod map[string]any, dir string) error {
	spec := pod["spec"].(map[string]any)
	volumes, ok := spec["volumes"].([]any)
	if !ok && spec["volumes"] != nil {
		return errors.New("cannot mount the manifest's directory: a Pod's spec.volumes is not a list")
	}
	if !has(volumes, "name", mountName) {
		spec["volumes"] = append(volumes, map[string]any{
			"name": mountName, "hostPath": map[string]any{"path": dir, "type": "Directory"},
		})
	}
	for _, field := range []string{"initContainers", "containers"} {
		containers, _ := spec[field].([]any) // the API server says better what else it may be
		for _, each := range containers {
			container, ok := each.(map[string]any)
			if !ok {
				continue
			}
			mounts, ok := container["volumeMounts"].([]any)
			if !ok && container["volumeMounts"] != nil {
				return fmt.Errorf("cannot mount the manifest's directory: volumeMounts of container %v is not a list", container["name"])
			}
			if !has(mounts, "mountPath", dir) {
				container["volumeMounts"] = append(mounts, map[string]any{"name": mountName, "mountPath": dir})
			}
			if container["workingDir"] == nil {
				container["workingDir"] = dir
			}
		}
	}
	return nil
}

// has reports whether a list has an object with the value in a field.
func has(list []any, field, value string) bool {
	for _, each := range list {
		if object, ok := each.(map[string]any); ok && object[field] == value {
			return true
		}
	}
	return false
}
