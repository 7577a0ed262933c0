// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// emptyDir makes a directory that everyone may write to, as kubelet's is.
func (m *Manager) emptyDir(dir string, s *corev1.EmptyDirVolumeSource) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot create a volume: %w", err)
	}
	if s.Medium == corev1.StorageMediumMemory && m.cfg.Tmpfs {
		var limit int64
		if s.SizeLimit != nil {
			limit = s.SizeLimit.Value()
		}
		if err := mountTmpfs(dir, limit); err != nil {
			return fmt.Errorf("cannot create a volume in memory: %w", err)
		}
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		return fmt.Errorf("cannot create a volume: %w", err)
	}
	return nil
}

// foreign returns the directory or file of a volume that exists anyway.
func (m *Manager) foreign(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) (string, error) {
	switch {
	case v.HostPath != nil:
		return v.HostPath.Path, hostPath(v.Name, v.HostPath)
	case v.PersistentVolumeClaim != nil:
		return m.claim(ctx, pod.Namespace, v.PersistentVolumeClaim.ClaimName, v.Name)
	case v.Ephemeral != nil:
		return m.claim(ctx, pod.Namespace, pod.Name+"-"+v.Name, v.Name)
	case v.Image != nil:
		return "", unsupported(v.Name, "images on this machine, so that no volume can be one")
	case v.NFS != nil:
		return "", unsupported(v.Name, "NFS volumes")
	case v.CSI != nil:
		return "", unsupported(v.Name, "CSI drivers")
	}
	return "", unsupported(v.Name, "volumes of this kind")
}

// hostPath checks a host path against the required type, and creates it if
// allowed.
func hostPath(volume string, s *corev1.HostPathVolumeSource) error {
	kind := corev1.HostPathUnset
	if s.Type != nil {
		kind = *s.Type
	}
	info, err := os.Stat(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		switch kind {
		case corev1.HostPathUnset, corev1.HostPathDirectoryOrCreate:
			err = os.MkdirAll(s.Path, 0o755)
		case corev1.HostPathFileOrCreate:
			err = os.WriteFile(s.Path, nil, 0o644)
		}
		if err == nil {
			info, err = os.Stat(s.Path)
		}
	}
	pending := func(why string) error {
		return &PendingError{Message: fmt.Sprintf("MountVolume.SetUp failed for volume %q : hostPath type check failed: %s %s", volume, s.Path, why)}
	}
	if err != nil {
		return pending(err.Error())
	}
	mode := info.Mode()
	var ok bool
	switch kind {
	case corev1.HostPathUnset:
		ok = true
	case corev1.HostPathDirectory, corev1.HostPathDirectoryOrCreate:
		ok = mode.IsDir()
	case corev1.HostPathFile, corev1.HostPathFileOrCreate:
		ok = mode.IsRegular()
	case corev1.HostPathSocket:
		ok = mode&fs.ModeSocket != 0
	case corev1.HostPathCharDev:
		ok = mode&fs.ModeCharDevice != 0
	case corev1.HostPathBlockDev:
		ok = mode&fs.ModeDevice != 0 && mode&fs.ModeCharDevice == 0
	}
	if !ok {
		return pending("is not a " + string(kind))
	}
	return nil
}

// claim finds the directory behind a persistent volume claim.
func (m *Manager) claim(ctx context.Context, namespace, name, volume string) (string, error) {
	pending := func(format string, args ...any) error {
		return &PendingError{Message: fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s", volume, fmt.Sprintf(format, args...))}
	}
	core := m.cfg.Client.CoreV1()
	claim, err := core.PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", pending("persistentvolumeclaim %q not found", name)
	case err != nil:
		return "", err
	case claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "":
		return "", pending("persistentvolumeclaim %q is not bound to a volume yet", name)
	}
	pv, err := core.PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", pending("persistentvolume %q not found", claim.Spec.VolumeName)
	}
	if err != nil {
		return "", err
	}
	switch {
	case pv.Spec.HostPath != nil:
		return pv.Spec.HostPath.Path, hostPath(volume, pv.Spec.HostPath)
	case pv.Spec.Local != nil:
		kind := corev1.HostPathDirectory
		return pv.Spec.Local.Path, hostPath(volume, &corev1.HostPathVolumeSource{Path: pv.Spec.Local.Path, Type: &kind})
	}
	return "", unsupported(volume, "persistent volumes other than hostPath and local")
}

// EmptyDir is an emptyDir volume and what it holds.
type EmptyDir struct {
	// Name is the volume's name.
	Name string
	// Limit is its sizeLimit in bytes; 0 is none.
	Limit int64
	// Used is the disk space of its files in bytes.
	Used int64
}

// EmptyDirs measures the Pod's emptyDirs on disk. It walks all files.
func (m *Manager) EmptyDirs(pod *corev1.Pod) []EmptyDir {
	var dirs []EmptyDir
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.EmptyDir == nil {
			continue
		}
		e := EmptyDir{Name: v.Name}
		if v.EmptyDir.SizeLimit != nil {
			e.Limit = v.EmptyDir.SizeLimit.Value()
		}
		e.Used = used(filepath.Join(m.podDir(string(pod.UID)), v.Name))
		dirs = append(dirs, e)
	}
	return dirs
}

// used adds up the blocks of all files below dir. Files that vanish meanwhile
// count nothing.
func used(dir string) int64 {
	var sum int64
	filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil
		}
		if info, err := e.Info(); err == nil {
			sum += blocks(info)
		}
		return nil
	})
	return sum
}
