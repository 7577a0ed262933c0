// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/platform/imagestore"
)

// Parallel is how many images are pulled at a time.
const Parallel = 3

// Puller provides images from a store, and pulls what is missing. Its methods may be
// called from several goroutines.
type Puller struct {
	store      *imagestore.Store
	registries string
	keychain   authn.Keychain
	slots      chan struct{}
	backoff    backoff

	mu    sync.Mutex
	locks map[string]*sharedLock // by image
}

// New returns a puller for a store. registries is the path of the file about mirrors
// and private registries (imagestore.ReadRegistries), which is read for each pull and
// need not exist. keychain has credentials for registries that no Secret of a Pod has any for.
func New(store *imagestore.Store, registries string, keychain authn.Keychain) *Puller {
	return &Puller{store: store, registries: registries, keychain: keychain, slots: make(chan struct{}, Parallel), locks: map[string]*sharedLock{}}
}

// Store is where the images are.
func (p *Puller) Store() *imagestore.Store { return p.store }

// Request asks for the image of one container.
type Request struct {
	// Image is the container's image, as its manifest names it.
	Image string
	// Policy is the container's pull policy.
	Policy corev1.PullPolicy
	// Pod is the Pod's UID: each Pod backs off for itself.
	Pod string
	// Secrets are the Pod's image pull secrets. They are read only if a registry is
	// asked.
	Secrets func(context.Context) ([]corev1.Secret, error)
	// Event tells the Pod's user what happens, in a kubelet's words.
	Event func(kind, reason, message string)
	// Progress tells how much has come; it is called often, never concurrently. nil is
	// none.
	Progress func(imagestore.Progress)
}

// Error says why a container has no image.
type Error struct {
	// Reason is a kubelet's: ErrImagePull, ImagePullBackOff, ErrImageNeverPull,
	// InvalidImageName, RegistryUnavailable.
	Reason string
	// Retry is when asking again may help.
	Retry time.Duration
	Err   error
}

// Error is the cause's message.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Image returns the image of a container. An error is an *Error, or ctx's.
func (p *Puller) Image(ctx context.Context, r Request) (*imagestore.Image, error) {
	name, err := imagestore.ParseName(r.Image)
	if err != nil {
		err = fmt.Errorf("cannot use image %q: %w", r.Image, err)
		r.Event(corev1.EventTypeWarning, "InspectFailed", err.Error())
		return nil, &Error{Reason: "InvalidImageName", Retry: longestPause, Err: err}
	}
	image, done, err := p.present(r, name)
	if done {
		return image, err
	}
	key := r.Pod + "_" + name.String()
	if last, left := p.backoff.waiting(key, time.Now()); last != nil {
		text := fmt.Sprintf("Back-off pulling image %q", r.Image)
		r.Event(corev1.EventTypeNormal, "BackOff", text)
		return nil, &Error{Reason: "ImagePullBackOff", Retry: left, Err: fmt.Errorf("%s: %s: %w", text, last.Reason, last.Err)}
	}
	image, err = p.pull(ctx, r, name)
	switch failure := (*Error)(nil); {
	case err == nil:
		p.backoff.succeeded(key)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &failure):
		// The next look says that it backs off, as a kubelet's does.
		p.backoff.failed(key, time.Now(), failure)
		failure.Retry = time.Second
		r.Event(corev1.EventTypeWarning, "Failed", fmt.Sprintf("Failed to pull image %q: %v", r.Image, failure.Err))
	}
	return image, err
}

// present decides without asking a registry, if it can.
func (p *Puller) present(r Request, name imagestore.Name) (_ *imagestore.Image, done bool, _ error) {
	image, err := p.store.Find(name)
	if err != nil && !errors.Is(err, imagestore.ErrNotFound) {
		return nil, true, &Error{Reason: "ImageInspectError", Retry: firstPause, Err: fmt.Errorf("cannot inspect image %q: %w", r.Image, err)}
	}
	switch next(r.Policy, err == nil) {
	case use:
		return image, true, nil
	case refuse:
		text := fmt.Sprintf("Container image %q is not present with pull policy of Never: pull it with `diwan images pull %s`, or load it with `diwan images load`", r.Image, r.Image)
		r.Event(corev1.EventTypeWarning, "ErrImageNeverPull", text)
		return nil, true, &Error{Reason: "ErrImageNeverPull", Retry: firstPause, Err: errors.New(text)}
	}
	return nil, false, nil
}

// pull pulls an image; an error is an *Error.
func (p *Puller) pull(ctx context.Context, r Request, name imagestore.Name) (*imagestore.Image, error) {
	failed := func(err error) error {
		reason := "ErrImagePull"
		var cause *imagestore.Error
		if errors.As(err, &cause) {
			reason = cause.Reason()
		}
		return &Error{Reason: reason, Err: err}
	}
	asked := time.Now()
	unlock, err := p.lock(ctx, name.String())
	if err != nil {
		return nil, failed(err)
	}
	defer unlock()
	// Another Pod may have pulled it while this one waited.
	if image, done, err := p.present(r, name); done {
		if err == nil {
			r.Event(corev1.EventTypeNormal, "Pulled", fmt.Sprintf("Container image %q already present on machine", r.Image))
		}
		return image, err
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, failed(ctx.Err())
	}
	list, err := r.Secrets(ctx)
	if err != nil {
		return nil, failed(err)
	}
	registries, err := imagestore.ReadRegistries(p.registries)
	if err != nil {
		return nil, failed(err)
	}
	credentials, err := fromSecrets(name.Context(), list)
	if err != nil {
		return nil, failed(err)
	}
	r.Event(corev1.EventTypeNormal, "Pulling", fmt.Sprintf("Pulling image %q", r.Image))
	begin := time.Now()
	image, err := p.store.Pull(ctx, name, imagestore.PullOptions{
		Registries: registries, Candidates: credentials, Keychain: p.keychain, Progress: r.Progress,
	})
	if err != nil {
		return nil, failed(err)
	}
	r.Event(corev1.EventTypeNormal, "Pulled", fmt.Sprintf("Successfully pulled image %q in %v (%v including waiting). Image size: %d bytes.",
		r.Image, time.Since(begin).Truncate(time.Millisecond), time.Since(asked).Truncate(time.Millisecond), image.Size()))
	return image, nil
}

// sharedLock is one image's: users counts who holds it or waits.
type sharedLock struct {
	token chan struct{}
	users int
}

// lock keeps others from pulling the same image.
func (p *Puller) lock(ctx context.Context, image string) (unlock func(), err error) {
	p.mu.Lock()
	l := p.locks[image]
	if l == nil {
		l = &sharedLock{token: make(chan struct{}, 1)}
		p.locks[image] = l
	}
	l.users++
	p.mu.Unlock()
	leave := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(p.locks, image)
		}
	}
	select {
	case l.token <- struct{}{}:
		return func() { <-l.token; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
