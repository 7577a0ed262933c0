// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"fmt"
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Checkpoint gives a job a directory. All Pods share it, including replacements,
// and it is deleted with the job. A program that resumes after a restart writes
// its state there, and looks for it when it starts.
type Checkpoint struct {
	// The mount path of the directory, also in the variable CHECKPOINT_DIR.
	// Default /checkpoint.
	Path string `json:"path,omitempty"`

	// The requested storage. Default 10Gi.
	Storage *resource.Quantity `json:"storage,omitempty"`

	// The storage class. Default: the cluster's default.
	StorageClassName *string `json:"storageClassName,omitempty"`

	// The access modes. Default ReadWriteMany; with ReadWriteOnce all Pods must
	// be on one node.
	// +listType=atomic
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty"`
}

// The variable with the path of a job's directory, and its volume in a Pod.
const (
	EnvCheckpoint    = "CHECKPOINT_DIR"
	CheckpointVolume = "job-checkpoint"
)

// SetDefaults fills in unset fields.
func (c *Checkpoint) SetDefaults() {
	if c == nil {
		return
	}
	if c.Path == "" {
		c.Path = "/checkpoint"
	}
	if c.Storage == nil {
		c.Storage = new(resource.MustParse("10Gi"))
	}
	if len(c.AccessModes) == 0 {
		c.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	}
}

// Validate validates it as the user wrote it, at that path.
func (c *Checkpoint) Validate(at *field.Path) field.ErrorList {
	if c == nil {
		return nil
	}
	var errs field.ErrorList
	if p := c.Path; p != "" && (p[0] != '/' || path.Clean(p) != p || p == "/") {
		errs = append(errs, field.Invalid(at.Child("path"), p, "must be an absolute path, such as /checkpoint"))
	}
	if c.Storage != nil && c.Storage.Sign() <= 0 {
		errs = append(errs, field.Invalid(at.Child("storage"), c.Storage.String(), "must be greater than zero"))
	}
	for i, mode := range c.AccessModes {
		switch mode {
		case corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod:
		default:
			errs = append(errs, field.NotSupported(at.Child("accessModes").Index(i), mode,
				[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod}))
		}
	}
	return errs
}

// Fits returns what in a Pod conflicts with the directory, nil if nothing does. c
// has its defaults.
func (c *Checkpoint) Fits(pod *corev1.PodSpec) error {
	for _, v := range pod.Volumes {
		if v.Name == CheckpointVolume {
			return fmt.Errorf("volume name %s is reserved for the job's checkpoints: rename it", CheckpointVolume)
		}
	}
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for _, in := range containers {
			for _, m := range in.VolumeMounts {
				if path.Clean(m.MountPath) == c.Path {
					return fmt.Errorf("container %s mounts volume %s at %s, the path of the job's checkpoints: choose another path", in.Name, m.Name, c.Path)
				}
			}
		}
	}
	return nil
}

// Unchanged requires that it is unchanged, since the volume exists.
func (c *Checkpoint) Unchanged(before *Checkpoint, at *field.Path) field.ErrorList {
	if equality.Semantic.DeepEqual(c, before) {
		return nil
	}
	return field.ErrorList{field.Forbidden(at, "field is immutable: create another job")}
}
