// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/fieldpath"
)

// defaultMode is the mode of files whose volume names none.
const defaultMode = 0o644

// rootCA is the ConfigMap with the API server's authority that every namespace
// has. It never changes, so it is not read for each Pod.
const rootCA = "kube-root-ca.crt"

// builder collects the content of one volume.
type builder struct {
	m       *Manager
	pod     *corev1.Pod
	volume  string
	out     content
	expires time.Time // when a token in the content should be renewed; zero: never
}

// build makes the content of a volume of the sorts shared and downwardAPI.
func (b *builder) build(ctx context.Context, v *corev1.Volume) error {
	if err := b.collect(ctx, v); err != nil {
		return err
	}
	if group := groupOf(b.pod); group != nil {
		b.out.give(*group)
	}
	return nil
}

// groupOf is the group to which a Pod's files belong, nil for none.
func groupOf(pod *corev1.Pod) *int64 {
	if s := pod.Spec.SecurityContext; s != nil {
		return s.FSGroup
	}
	return nil
}

func (b *builder) collect(ctx context.Context, v *corev1.Volume) error {
	switch {
	case v.ConfigMap != nil:
		s := v.ConfigMap
		return b.configMap(ctx, s.Name, s.Items, s.Optional, modeOf(s.DefaultMode))
	case v.Secret != nil:
		s := v.Secret
		return b.secret(ctx, s.SecretName, s.Items, s.Optional, modeOf(s.DefaultMode))
	case v.DownwardAPI != nil:
		return b.downward(v.DownwardAPI.Items, modeOf(v.DownwardAPI.DefaultMode))
	case v.Projected != nil:
		return b.projected(ctx, v.Projected)
	}
	return nil
}

func (b *builder) projected(ctx context.Context, p *corev1.ProjectedVolumeSource) error {
	mode := modeOf(p.DefaultMode)
	for i := range p.Sources {
		var err error
		switch s := &p.Sources[i]; {
		case s.ConfigMap != nil:
			err = b.configMap(ctx, s.ConfigMap.Name, s.ConfigMap.Items, s.ConfigMap.Optional, mode)
		case s.Secret != nil:
			err = b.secret(ctx, s.Secret.Name, s.Secret.Items, s.Secret.Optional, mode)
		case s.DownwardAPI != nil:
			err = b.downward(s.DownwardAPI.Items, mode)
		case s.ServiceAccountToken != nil:
			err = b.token(ctx, s.ServiceAccountToken, mode)
		default:
			err = b.unsupported("projected sources other than configMap, secret, downwardAPI and serviceAccountToken")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) configMap(ctx context.Context, name string, items []corev1.KeyToPath, optional *bool, mode fs.FileMode) error {
	if name == rootCA && b.m.cfg.RootCA != nil {
		return b.keys("configmap", name, items, optional, mode, map[string][]byte{"ca.crt": b.m.cfg.RootCA})
	}
	object, err := b.m.objects.ConfigMap(ctx, b.pod.Namespace, name)
	if missing, err := b.missing("configmap", name, optional, err); missing || err != nil {
		return err
	}
	data := map[string][]byte{}
	for k, v := range object.Data {
		data[k] = []byte(v)
	}
	for k, v := range object.BinaryData {
		data[k] = v
	}
	return b.keys("configmap", name, items, optional, mode, data)
}

func (b *builder) secret(ctx context.Context, name string, items []corev1.KeyToPath, optional *bool, mode fs.FileMode) error {
	object, err := b.m.objects.Secret(ctx, b.pod.Namespace, name)
	if missing, err := b.missing("secret", name, optional, err); missing || err != nil {
		return err
	}
	return b.keys("secret", name, items, optional, mode, object.Data)
}

// missing reports whether an optional object is absent.
func (b *builder) missing(kind, name string, optional *bool, err error) (bool, error) {
	switch {
	case err == nil:
		return false, nil
	case apierrors.IsNotFound(err) && optional != nil && *optional:
		return true, nil
	case apierrors.IsNotFound(err):
		return false, b.pending(fmt.Sprintf("%s %q not found", kind, name))
	case apierrors.IsForbidden(err):
		return false, b.pending(err.Error())
	}
	return false, err
}

// keys adds the wanted keys of an object: all, or those of items.
func (b *builder) keys(kind, name string, items []corev1.KeyToPath, optional *bool, mode fs.FileMode, data map[string][]byte) error {
	if len(items) == 0 {
		for k, v := range data {
			if err := b.out.add(k, v, mode); err != nil {
				return b.pending(err.Error())
			}
		}
		return nil
	}
	for _, item := range items {
		value, ok := data[item.Key]
		if !ok {
			if optional != nil && *optional {
				continue
			}
			return b.pending(fmt.Sprintf("%s %q references non-existent key: %s", kind, name, item.Key))
		}
		m := mode
		if item.Mode != nil {
			m = fs.FileMode(*item.Mode)
		}
		if err := b.out.add(item.Path, value, m); err != nil {
			return b.pending(err.Error())
		}
	}
	return nil
}

func (b *builder) downward(items []corev1.DownwardAPIVolumeFile, mode fs.FileMode) error {
	for _, item := range items {
		text, err := "", error(nil)
		switch {
		case item.FieldRef != nil:
			text, err = fieldpath.ExtractFieldPathAsString(b.pod, item.FieldRef.FieldPath)
		case item.ResourceFieldRef != nil:
			text, err = resource.ExtractResourceValueByContainerNameAndNodeAllocatable(item.ResourceFieldRef, b.pod, item.ResourceFieldRef.ContainerName, b.m.cfg.Allocatable)
		}
		if err != nil {
			return b.pending(err.Error())
		}
		m := mode
		if item.Mode != nil {
			m = fs.FileMode(*item.Mode)
		}
		if err := b.out.add(item.Path, []byte(text), m); err != nil {
			return b.pending(err.Error())
		}
	}
	return nil
}

// pending is an error that may pass.
func (b *builder) pending(why string) error {
	return &PendingError{Message: fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s", b.volume, why)}
}

func (b *builder) unsupported(what string) error { return unsupported(b.volume, what) }

func unsupported(volume, what string) error {
	return &PendingError{Message: fmt.Sprintf("MountVolume.SetUp failed for volume %q : this node runs Pods as processes and has no %s; use emptyDir, hostPath, configMap, secret, projected, downwardAPI or a persistent volume on a local directory", volume, what)}
}

func modeOf(m *int32) fs.FileMode {
	if m == nil {
		return defaultMode
	}
	return fs.FileMode(*m)
}

// showsPod reports whether the content of a volume depends on the Pod itself.
func showsPod(v *corev1.Volume) bool {
	if v.DownwardAPI != nil {
		return showPod(v.DownwardAPI.Items)
	}
	if v.Projected != nil {
		for _, s := range v.Projected.Sources {
			if s.DownwardAPI != nil && showPod(s.DownwardAPI.Items) {
				return true
			}
		}
	}
	return false
}

// showPod reports whether items show more than what Pods of one service account
// have in common. The token volume that every Pod gets shows the namespace.
func showPod(items []corev1.DownwardAPIVolumeFile) bool {
	for _, item := range items {
		if item.FieldRef == nil {
			return true
		}
		switch item.FieldRef.FieldPath {
		case "metadata.namespace", "spec.serviceAccountName", "spec.nodeName":
		default:
			return true
		}
	}
	return false
}

// isContent reports whether a volume consists of files that this package
// writes.
func isContent(v *corev1.Volume) bool {
	return v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.Projected != nil
}
