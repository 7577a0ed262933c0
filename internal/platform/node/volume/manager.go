// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Config configures a Manager.
type Config struct {
	// Dir is the node's state: Dir/pods/<uid>/volumes and Dir/content. Absolute.
	Dir string
	// Client reads objects and requests tokens.
	Client kubernetes.Interface
	// Objects reads ConfigMaps and Secrets. Default NewObjects(Client).
	Objects *Objects
	// Refresh is how often the content of volumes in use is compared with its
	// objects. Default 30 s, half of kubelet's period.
	Refresh time.Duration
	// Linger is how long shared content stays after its last Pod, for the next.
	// Default 5 min.
	Linger time.Duration
	// RootCA, if set, is the content of every ConfigMap kube-root-ca.crt, which
	// then is not read.
	RootCA []byte
	// Allocatable is the node's allocatable resources, for resourceFieldRef
	// of containers without limits.
	Allocatable corev1.ResourceList
	// Image provides the image of a volume, and tells the Pod's user of it; nil means that
	// this machine has no images. A *PendingError may be temporary.
	Image func(ctx context.Context, pod *corev1.Pod, volume *corev1.Volume) (*Image, error)
	// Tmpfs says that emptyDirs of medium Memory are file systems in memory; it
	// needs root on Linux. Else they are directories.
	Tmpfs bool
}

// DefaultConfig is the configuration for the node state dir.
func DefaultConfig(dir string, client kubernetes.Interface) Config {
	return Config{Dir: dir, Client: client, Refresh: 30 * time.Second, Linger: 5 * time.Minute, Tmpfs: canTmpfs()}
}

// Image is an image whose files are a volume.
type Image struct {
	// ID names it: repository@sha256:digest of its manifest.
	ID string
	// Layers are its unpacked layers, absolute paths, lowest first.
	Layers []string
}

// PendingError means that a volume cannot be created now. Retrying may help:
// a missing object may be created.
type PendingError struct{ Message string }

// Error is the message in kubelet's words.
func (e *PendingError) Error() string { return e.Message }

// Manager makes volumes. Its methods may be called from several goroutines; a
// Pod is not released while it is prepared.
type Manager struct {
	cfg     Config
	objects *Objects

	mu     sync.Mutex
	shared map[string]*shared // by the directory's name
	pods   map[string]*podVolumes

	tokenMu sync.Mutex
	tokens  map[tokenKey]token
}

// podVolumes are the volumes of a Pod.
type podVolumes struct {
	writing sync.Mutex // held while the Pod's volumes are made or changed

	pod   *corev1.Pod
	names map[string]string // volume name to directory
	uses  []*shared

	images map[string]*Image // by the volume's name
}

// shared is a directory of content for all Pods that agree in its key.
type shared struct {
	dir    string
	volume corev1.Volume
	pod    *corev1.Pod // of the newest user: namespace and service account
	users  int
	idle   time.Time // since when users is 0

	mu      sync.Mutex // held while the content is written
	written bool
	expires time.Time
}

// New returns a Manager.
func New(cfg Config) *Manager {
	def := DefaultConfig(cfg.Dir, cfg.Client)
	if cfg.Refresh <= 0 {
		cfg.Refresh = def.Refresh
	}
	if cfg.Linger <= 0 {
		cfg.Linger = def.Linger
	}
	m := &Manager{cfg: cfg, objects: cfg.Objects, shared: map[string]*shared{}, pods: map[string]*podVolumes{}, tokens: map[tokenKey]token{}}
	if m.objects == nil {
		m.objects = NewObjects(cfg.Client)
	}
	return m
}

// Prepare creates all volumes of the Pod. A *PendingError may be temporary;
// existing volumes stay.
func (m *Manager) Prepare(ctx context.Context, pod *corev1.Pod) error {
	m.mu.Lock()
	p := m.pods[string(pod.UID)]
	if p == nil {
		p = &podVolumes{names: map[string]string{}, images: map[string]*Image{}}
		m.pods[string(pod.UID)] = p
	}
	p.pod = pod
	m.mu.Unlock()
	p.writing.Lock()
	defer p.writing.Unlock()
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if _, done := p.names[v.Name]; done {
			continue
		}
		dir, err := m.prepare(ctx, p, v)
		if err != nil {
			return err
		}
		m.mu.Lock()
		p.names[v.Name] = dir
		m.mu.Unlock()
	}
	return nil
}

// prepare makes one volume and returns its directory, or its file.
func (m *Manager) prepare(ctx context.Context, p *podVolumes, v *corev1.Volume) (string, error) {
	own := filepath.Join(m.podDir(string(p.pod.UID)), v.Name)
	switch {
	case v.EmptyDir != nil:
		return own, m.emptyDir(own, v.EmptyDir)
	case v.Image != nil && m.cfg.Image != nil:
		image, err := m.cfg.Image(ctx, p.pod, v)
		if err != nil {
			return "", err
		}
		m.mu.Lock()
		p.images[v.Name] = image
		m.mu.Unlock()
		return "/", nil
	case isContent(v) && showsPod(v):
		b := &builder{m: m, pod: p.pod, volume: v.Name, out: content{}}
		if err := b.build(ctx, v); err != nil {
			return "", err
		}
		return own, b.out.write(own)
	case isContent(v):
		return m.share(ctx, p, v)
	default:
		return m.foreign(ctx, p.pod, v)
	}
}

// share makes or finds the directory of a shared volume.
func (m *Manager) share(ctx context.Context, p *podVolumes, v *corev1.Volume) (string, error) {
	var account types.UID
	var err error
	if hasToken(v) {
		if account, err = m.objects.Account(ctx, p.pod.Namespace, accountOf(p.pod)); err != nil {
			return "", err
		}
	}
	name, err := shareKey(p.pod, v, account)
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	s := m.shared[name]
	if s == nil {
		s = &shared{dir: filepath.Join(m.cfg.Dir, "content", name), volume: *v}
		m.shared[name] = s
	}
	s.users++
	s.pod = p.pod
	m.mu.Unlock()
	if err := m.refresh(ctx, s, p.pod, !onlyToken(v)); err != nil {
		m.unuse(s)
		return "", err
	}
	m.mu.Lock()
	p.uses = append(p.uses, s)
	m.mu.Unlock()
	return s.dir, nil
}

// refresh writes the content of a shared directory if it has none, if anew is
// set, or if a token in it is about to expire.
func (m *Manager) refresh(ctx context.Context, s *shared, pod *corev1.Pod, anew bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := !s.expires.IsZero() && time.Now().After(s.expires)
	if s.written && !anew && !old {
		return nil
	}
	b := &builder{m: m, pod: pod, volume: s.volume.Name, out: content{}}
	if err := b.build(ctx, &s.volume); err != nil {
		return err
	}
	if err := b.out.write(s.dir); err != nil {
		return fmt.Errorf("cannot write volume %q: %w", s.volume.Name, err)
	}
	s.written, s.expires = true, b.expires
	return nil
}

// onlyToken reports whether a volume has only tokens and the CA certificate,
// which a user cannot have changed recently.
func onlyToken(v *corev1.Volume) bool {
	if v.Projected == nil {
		return false
	}
	for _, s := range v.Projected.Sources {
		if s.Secret != nil || s.ConfigMap != nil && s.ConfigMap.Name != rootCA {
			return false
		}
	}
	return true
}

// shareKey names the directory of a shared volume after all that its content
// depends on. account is the UID of the service account, where there is a token.
func shareKey(pod *corev1.Pod, v *corev1.Volume, account types.UID) (string, error) {
	key := struct {
		Namespace, Account string
		AccountUID, Pod    types.UID
		Source             corev1.VolumeSource
		Group              *int64 `json:",omitempty"`
	}{Namespace: pod.Namespace, Account: pod.Spec.ServiceAccountName, AccountUID: account, Source: v.VolumeSource, Group: groupOf(pod)}
	if bound(v) {
		key.Pod = pod.UID
	}
	text, err := json.Marshal(key)
	if err != nil {
		return "", fmt.Errorf("cannot name volume %q: %w", v.Name, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// Images are the images of a Pod's volumes, those that it has by now, by the volumes' names.
func (m *Manager) Images(podUID string) map[string]Image {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]Image{}
	if p := m.pods[podUID]; p != nil {
		for name, image := range p.images {
			all[name] = *image
		}
	}
	return all
}

func (m *Manager) unuse(s *shared) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.users--; s.users == 0 {
		s.idle = time.Now()
	}
}

// Update shows a changed Pod in its downwardAPI volumes.
func (m *Manager) Update(ctx context.Context, pod *corev1.Pod) error {
	m.mu.Lock()
	p := m.pods[string(pod.UID)]
	if p != nil {
		p.pod = pod
	}
	m.mu.Unlock()
	if p == nil {
		return nil
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	var errs []error
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if _, done := p.names[v.Name]; !done || !showsPod(v) {
			continue
		}
		b := &builder{m: m, pod: pod, volume: v.Name, out: content{}}
		err := b.build(ctx, v)
		if err == nil {
			err = b.out.write(p.names[v.Name])
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Release removes the Pod's own volumes and its use of shared ones. It can be
// called for a Pod that only an earlier process knew.
func (m *Manager) Release(podUID string) error {
	m.mu.Lock()
	p := m.pods[podUID]
	delete(m.pods, podUID)
	m.mu.Unlock()
	if p != nil {
		for _, s := range p.uses {
			m.unuse(s)
		}
	}
	dir := m.podDir(podUID)
	if err := unmountBelow(dir); err != nil {
		return fmt.Errorf("cannot unmount the volumes of Pod %s: %w", podUID, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("cannot remove the volumes of Pod %s: %w", podUID, err)
	}
	return nil
}

func (m *Manager) podDir(uid string) string { return filepath.Join(m.cfg.Dir, "pods", uid, "volumes") }

// Run keeps shared content up to date until ctx is done. report, which may be
// nil, is called with errors; the next round retries.
func (m *Manager) Run(ctx context.Context, report func(error)) {
	tick := time.NewTicker(m.cfg.Refresh)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := m.round(ctx); err != nil && ctx.Err() == nil && report != nil {
			report(err)
		}
	}
}

// round refreshes content in use and removes long unused content.
func (m *Manager) round(ctx context.Context) error {
	m.mu.Lock()
	var used []*shared
	for name, s := range m.shared {
		switch {
		case s.users > 0:
			used = append(used, s)
		case time.Since(s.idle) > m.cfg.Linger:
			delete(m.shared, name)
			os.RemoveAll(s.dir)
		}
	}
	pods := map[*shared]*corev1.Pod{}
	for _, s := range used {
		pods[s] = s.pod
	}
	known := map[string]bool{}
	for name := range m.shared {
		known[name] = true
	}
	m.removeUnknown(known)
	m.mu.Unlock()
	var errs []error
	for _, s := range used {
		err := m.refresh(ctx, s, pods[s], !onlyToken(&s.volume))
		if pending := (*PendingError)(nil); errors.As(err, &pending) {
			continue // the object was deleted: the files stay, as with kubelet
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// removeUnknown removes content that an earlier process left.
func (m *Manager) removeUnknown(known map[string]bool) {
	root := filepath.Join(m.cfg.Dir, "content")
	entries, _ := os.ReadDir(root)
	for _, e := range entries {
		if !known[e.Name()] {
			os.RemoveAll(filepath.Join(root, e.Name()))
		}
	}
}
