// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/platform/node/container"
)

// Mounts returns the mounts of a container of a prepared Pod, parents before
// children. expand replaces $(VAR) in subPathExpr by the container's
// environment and fails for an unknown variable. Errors are about the
// container's description.
func (m *Manager) Mounts(pod *corev1.Pod, c *corev1.Container, expand func(string) (string, error)) ([]container.Mount, error) {
	var mounts []container.Mount
	for i := range c.VolumeMounts {
		vm := &c.VolumeMounts[i]
		source, readOnly, err := m.source(pod, vm.Name)
		if err != nil {
			return nil, err
		}
		mount := container.Mount{
			Source: source, Target: filepath.Join("/", vm.MountPath), ReadOnly: readOnly || vm.ReadOnly,
		}
		sub := vm.SubPath
		if vm.SubPathExpr != "" {
			if sub, err = expand(vm.SubPathExpr); err != nil {
				return nil, fmt.Errorf("cannot expand subPathExpr %q of volume mount %q: %w", vm.SubPathExpr, vm.Name, err)
			}
		}
		image := m.image(pod, vm.Name)
		switch {
		case image != nil:
			mount.Source, mount.Layers, mount.ImageID, mount.ReadOnly = filepath.Join("/", sub), image.Layers, image.ID, true
		case sub != "":
			if mount.Source, err = within(source, sub, readOnly); err != nil {
				return nil, fmt.Errorf("failed to prepare subPath for volumeMount %q of container %q: %w", vm.Name, c.Name, err)
			}
			if mount.Source != source {
				mount.Base = source
			}
		}
		mounts = append(mounts, mount)
	}
	slices.SortStableFunc(mounts, func(a, b container.Mount) int { return depth(a.Target) - depth(b.Target) })
	return mounts, nil
}

func depth(path string) int {
	if path == "/" {
		return 0
	}
	return strings.Count(path, "/")
}

// source finds the directory of a volume, and whether it is read-only always.
func (m *Manager) source(pod *corev1.Pod, name string) (string, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pods[string(pod.UID)]
	if p == nil || p.names[name] == "" {
		return "", false, fmt.Errorf("cannot find volume %q: it is not prepared", name)
	}
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Name == name {
			readOnly := isContent(v) || v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly
			return p.names[name], readOnly, nil
		}
	}
	return "", false, fmt.Errorf("cannot find volume %q in the Pod", name)
}

// image is the image of a volume, nil for other volumes.
func (m *Manager) image(pod *corev1.Pod, name string) *Image {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.pods[string(pod.UID)]; p != nil {
		return p.images[name]
	}
	return nil
}

// within returns a path inside a volume. Symbolic links in the volume cannot
// lead out of it; who mounts it must see to that again, for programs may change
// them. A directory that is missing is made, unless the volume is read-only.
func within(dir, sub string, readOnly bool) (string, error) {
	if !filepath.IsLocal(sub) {
		return "", fmt.Errorf("path %q escapes the volume", sub)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	_, err = root.Stat(sub)
	if errors.Is(err, fs.ErrNotExist) && !readOnly {
		if err = root.MkdirAll(sub, 0o755); err == nil {
			_, err = root.Stat(sub)
		}
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, sub), nil
}
