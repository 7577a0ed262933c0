// SPDX-License-Identifier: Apache-2.0

// Package registry learns from container registries what images run by
// themselves, for containers whose manifest does not say.
//
// It asks as kubelet does: with the pull secrets of the Pod and of its service
// account, where it may read them, and else without credentials. An answer is
// kept for a while by the image's name.
package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/internal/collector/injection"
)

const (
	// timeout bounds a look-up: the API server waits ten seconds for a webhook.
	timeout = 8 * time.Second
	// fresh is how long an answer counts, as a tag may be moved, and stale how
	// long an error does, so that not each Pod of many waits for a registry that
	// is not there.
	fresh, stale = time.Minute, 10 * time.Second
	// maxKept bounds the answers that are kept.
	maxKept = 1_000
)

// Registry is an [injection.Images].
type Registry struct {
	// Reader reads service accounts and secrets.
	Reader client.Reader
	// Transport carries the requests. Nil: as any program's.
	Transport http.RoundTripper
	// Now is the time. Nil: the system's.
	Now func() time.Time

	mu   sync.Mutex
	kept map[question]answer
}

var _ injection.Images = (*Registry)(nil)

// question is what an answer depends on: who asks may see other images, by the
// account or by secrets of the Pod's own.
type question struct{ namespace, account, secrets, image string }

func questionOf(pod *corev1.Pod, image string) question {
	var secrets strings.Builder
	for _, reference := range pod.Spec.ImagePullSecrets {
		secrets.WriteString(reference.Name + " ")
	}
	return question{pod.Namespace, pod.Spec.ServiceAccountName, secrets.String(), image}
}

type answer struct {
	entrypoint *injection.Entrypoint
	err        error
	patience   time.Duration // how long the registry had for it, in seconds
	until      time.Time
}

// serves reports whether an answer counts for who asks with such patience: that
// the registry was too slow for another says nothing to one who waits longer.
func (a answer) serves(now time.Time, patience time.Duration) bool {
	return now.Before(a.until) && (a.err == nil || patience <= a.patience)
}

// Entrypoint implements [injection.Images].
func (r *Registry) Entrypoint(ctx context.Context, pod *corev1.Pod, container *corev1.Container) (*injection.Entrypoint, error) {
	now := time.Now
	if r.Now != nil {
		now = r.Now
	}
	q := questionOf(pod, container.Image)
	r.mu.Lock()
	known, ok := r.kept[q]
	r.mu.Unlock()
	patience := timeout
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline).Round(time.Second))
	}
	if ok && known.serves(now(), patience) {
		return known.entrypoint, known.err
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	e, err := r.look(limited, pod, container.Image)
	if errors.Is(ctx.Err(), context.Canceled) {
		return e, err // says nothing about the registry
	}
	counts := fresh
	if err != nil {
		counts = stale
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil || len(r.kept) >= maxKept {
		r.kept = map[question]answer{}
	}
	r.kept[q] = answer{e, err, patience, now().Add(counts)}
	return e, err
}

// look asks the registry.
func (r *Registry) look(ctx context.Context, pod *corev1.Pod, image string) (*injection.Entrypoint, error) {
	reference, err := name.ParseReference(image)
	if err != nil {
		return nil, err
	}
	var keys authn.Keychain = anonymous{}
	if r.Reader != nil {
		if keys, err = r.keychain(ctx, pod); err != nil {
			return nil, err
		}
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(keys), remote.WithPlatform(platform(pod)), remote.WithUserAgent("diwan")}
	if r.Transport != nil {
		options = append(options, remote.WithTransport(r.Transport))
	}
	found, err := remote.Image(reference, options...)
	if err != nil {
		return nil, err
	}
	file, err := found.ConfigFile()
	if err != nil {
		return nil, err
	}
	e := &injection.Entrypoint{Command: file.Config.Entrypoint, Args: file.Config.Cmd}
	if len(e.Command)+len(e.Args) == 0 {
		return nil, fmt.Errorf("image %s runs nothing by itself", image)
	}
	return e, nil
}

// platform is that of the node which the Pod asks for, as far as it does. What
// an image runs hardly depends on it.
func platform(pod *corev1.Pod) v1.Platform {
	p := v1.Platform{OS: "linux", Architecture: "amd64"}
	if arch := pod.Spec.NodeSelector[corev1.LabelArchStable]; arch != "" {
		p.Architecture = arch
	}
	return p
}

// anonymous has no credentials.
type anonymous struct{}

// Resolve implements authn.Keychain.
func (anonymous) Resolve(authn.Resource) (authn.Authenticator, error) { return authn.Anonymous, nil }
