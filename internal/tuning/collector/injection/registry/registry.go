// SPDX-License-Identifier: Apache-2.0

// Package registry looks up image entrypoints in container registries, for
// containers without a command in the manifest.
//
// Whoever creates a Pod names the host that is asked, so none is at an address
// that is not public unless [Allowed], wherever it redirects to.
//
// Pull secrets of the Pod and of its service account are used as kubelet does,
// where the operator may read them and what controls the Pod names the image: the
// Pod itself does not exist yet, and whoever asks may have made it up. An answer is
// kept for a while by the image's name.
package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"diwan.dev/diwan/internal/tuning/collector/injection"
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

// Registry is an [injection.Images]. New makes one.
type Registry struct {
	reader client.Reader // of service accounts and secrets, and of what controls Pods
	// Now is the time. Nil: the system's.
	Now func() time.Time

	transport http.RoundTripper

	mu   sync.Mutex
	kept map[question]answer
}

// New returns a Registry that reads with reader, and asks public registries and
// those that are allowed. The administrator may have set a proxy by the environment.
func New(reader client.Reader, allowed Allowed) *Registry {
	return &Registry{reader: reader, transport: newTransport(allowed, http.ProxyFromEnvironment)}
}

var _ injection.Images = (*Registry)(nil)

// question is what an answer depends on: who asks may see other images, by the
// account or by secrets of the Pod's own, or may use none of these.
type question struct {
	namespace, account, secrets, image string
	anonymous                          bool
}

func questionOf(pod *corev1.Pod, image string, anonymous bool) question {
	var secrets strings.Builder
	for _, reference := range pod.Spec.ImagePullSecrets {
		secrets.WriteString(reference.Name + " ")
	}
	return question{pod.Namespace, pod.Spec.ServiceAccountName, secrets.String(), image, anonymous}
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
	named, err := r.named(ctx, pod, container.Image)
	if err != nil {
		return nil, err
	}
	q := questionOf(pod, container.Image, !named)
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
	e, err := r.look(limited, pod, container.Image, !named)
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
func (r *Registry) look(ctx context.Context, pod *corev1.Pod, image string, withoutKeys bool) (*injection.Entrypoint, error) {
	reference, err := name.ParseReference(image)
	if err != nil {
		return nil, err
	}
	var keys authn.Keychain = anonymous{}
	if !withoutKeys {
		if keys, err = r.keychain(ctx, pod); err != nil {
			return nil, err
		}
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(keys), remote.WithPlatform(platform(pod)), remote.WithUserAgent("diwan"), remote.WithTransport(r.transport)}
	var file *v1.ConfigFile
	found, err := remote.Image(reference, options...)
	if err == nil {
		file, err = found.ConfigFile()
	}
	if err != nil {
		log.FromContext(ctx).Info("Cannot query a registry", "image", image, "namespace", pod.Namespace, "reason", err.Error())
		return nil, explain(err)
	}
	e := &injection.Entrypoint{Command: file.Config.Entrypoint, Args: file.Config.Cmd}
	if len(e.Command)+len(e.Args) == 0 {
		return nil, fmt.Errorf("image %s has no entrypoint or command", image)
	}
	return e, nil
}

// explain says why a registry gave no answer, without quoting what it said or
// telling the addresses of hosts: who named the registry may not know either.
func explain(err error) error {
	var (
		refused     notAllowed
		answer      *transport.Error
		resolution  *net.DNSError
		certificate *tls.CertificateVerificationError
		network     *net.OpError
	)
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &answer):
		return fmt.Errorf("the registry returned %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("the registry did not answer in time")
	case errors.As(err, &resolution):
		return fmt.Errorf("the registry's host %s cannot be resolved", resolution.Name)
	case errors.As(err, &certificate):
		return errors.New("the registry's certificate is not trusted")
	case errors.As(err, &network):
		return errors.New("the registry cannot be reached")
	case errors.Is(err, errTooLarge):
		return errTooLarge
	}
	return errors.New("the registry's response cannot be parsed; see the operator's log")
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
