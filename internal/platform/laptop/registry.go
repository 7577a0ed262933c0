// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"diwan.dev/diwan/internal/platform/registry"
)

const (
	registryDir       = "registry"
	registryTokenFile = "registry-token"
	registryPortFile  = "registry-port"

	// registryCollects is how often the registry removes what no tag needs, and
	// registryUntagged how long after it lost its tag.
	registryCollects = time.Hour
	registryUntagged = 24 * time.Hour
	// registryLook is how often one looks whether another process still has it open.
	registryLook = 50 * time.Millisecond
)

// Registry says how the home's OCI registry is reached. It is a keychain with
// credentials for that registry alone.
type Registry struct {
	// Host is what names of images in the registry begin with: localhost:PORT.
	Host string
	// Token is the password, with any user name.
	Token string
	// TokenFile has the token.
	TokenFile string
}

// Has reports whether a host, as in an image's name, is this registry.
func (r Registry) Has(host string) bool {
	name, port, err := net.SplitHostPort(host)
	return err == nil && (name == "localhost" || name == "127.0.0.1") && net.JoinHostPort("localhost", port) == r.Host
}

// Resolve implements [authn.Keychain].
func (r Registry) Resolve(target authn.Resource) (authn.Authenticator, error) {
	if !r.Has(target.RegistryStr()) {
		return authn.Anonymous, nil
	}
	return &authn.Basic{Username: "diwan", Password: r.Token}, nil
}

// registryAt describes the registry at a port, and creates its token if there is none.
func (h Home) registryAt(port int) (Registry, error) {
	file := h.Path(registryTokenFile)
	token, err := registry.EnsureToken(file)
	return Registry{Host: net.JoinHostPort("localhost", strconv.Itoa(port)), Token: token, TokenFile: file}, err
}

// UseRegistry returns the home's registry: that of the running cluster, else one that is
// served until done is called.
func UseRegistry(ctx context.Context, home Home) (_ Registry, done func(), err error) {
	if err := os.MkdirAll(string(home), 0o700); err != nil {
		return Registry{}, nil, fmt.Errorf("cannot create the home %s: %w", home, err)
	}
	if err := home.trusted(); err != nil {
		return Registry{}, nil, err
	}
	for {
		if home.Owner() != 0 {
			at, err := home.runningRegistry()
			return at, func() {}, err
		}
		opened, err := home.openRegistry()
		if err == nil {
			ctx, cancel := context.WithCancel(ctx)
			var serving sync.WaitGroup
			for _, l := range opened.listeners {
				serving.Go(func() { _ = opened.content.Serve(ctx, l) }) // its clients see what fails
			}
			return opened.at, func() {
				cancel()
				serving.Wait()
				opened.content.Close()
			}, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return Registry{}, nil, err
		}
		if err := pause(ctx, registryLook); err != nil { // another command serves it for a moment
			return Registry{}, nil, err
		}
	}
}

// runningRegistry is that of the process that owns the home.
func (h Home) runningRegistry() (Registry, error) {
	text, err := os.ReadFile(h.Path(registryPortFile))
	if err != nil {
		return Registry{}, fmt.Errorf("cannot find the registry of the running diwan: %w", err)
	}
	port, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 16)
	if err != nil {
		return Registry{}, fmt.Errorf("cannot read %s: %w; remove the file and start diwan again", h.Path(registryPortFile), err)
	}
	return h.registryAt(int(port))
}

// openedRegistry belongs to this process.
type openedRegistry struct {
	at        Registry
	content   *registry.Registry
	listeners []net.Listener
}

// openRegistry opens the home's registry. An error is [unix.EWOULDBLOCK] if another
// process has it open.
func (h Home) openRegistry() (_ openedRegistry, err error) {
	token, err := registry.EnsureToken(h.Path(registryTokenFile))
	if err != nil {
		return openedRegistry{}, err
	}
	content, err := registry.Open(registry.Config{
		Dir: h.Path(registryDir), Authorize: registry.TokenPolicy(token, false),
		Log: func(req *http.Request, err error) {
			klog.Background().WithName("registry").Error(err, "cannot answer", "method", req.Method, "path", req.URL.Path)
		},
	})
	if err != nil {
		return openedRegistry{}, err
	}
	listeners, err := h.listenRegistry()
	if err != nil {
		return openedRegistry{}, errors.Join(err, content.Close())
	}
	at, err := h.registryAt(portOf(listeners[0]))
	return openedRegistry{at: at, content: content, listeners: listeners}, err
}

// listenRegistry listens on the port that the home's registry had before, or on any, of
// both loopback addresses: clients try both for localhost, and send the token to whoever
// answers.
func (h Home) listenRegistry() ([]net.Listener, error) {
	for {
		l, err := h.keptPort(registryPortFile)
		if err != nil {
			return nil, fmt.Errorf("cannot listen for the registry: %w", err)
		}
		other, err := net.Listen("tcp6", net.JoinHostPort("::1", strconv.Itoa(portOf(l))))
		switch {
		case err == nil:
			return []net.Listener{l, other}, nil
		case !errors.Is(err, unix.EADDRINUSE):
			return []net.Listener{l}, nil // no one can have that address
		}
		l.Close()
		if err := os.Remove(h.Path(registryPortFile)); err != nil {
			return nil, fmt.Errorf("cannot listen for the registry: %w", err)
		}
	}
}

// startRegistry serves the home's registry, and removes what no tag needs.
func (c *Cluster) startRegistry(ctx context.Context, progress func(string)) error {
	opened, err := c.home.openRegistry()
	for said := false; errors.Is(err, unix.EWOULDBLOCK); opened, err = c.home.openRegistry() {
		if !said {
			progress("waiting for another diwan that uses the registry")
			said = true
		}
		if err := pause(ctx, registryLook); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	c.registry = opened.at
	log := klog.Background().WithName("registry")
	c.onStop(func() {
		if err := opened.content.Close(); err != nil {
			log.Error(err, "cannot close it")
		}
	})
	for _, l := range opened.listeners {
		if err := c.background(ctx, func(ctx context.Context) (func(), error) {
			return c.supervise(ctx, func(ctx context.Context) error { return opened.content.Serve(ctx, l) }), nil
		}); err != nil {
			return err
		}
	}
	return c.background(ctx, func(ctx context.Context) (func(), error) {
		return c.supervise(ctx, func(ctx context.Context) error {
			for pause(ctx, registryCollects) == nil {
				removed, err := opened.content.Collect(ctx, registry.Options{UntaggedAge: registryUntagged})
				if err != nil && ctx.Err() == nil {
					log.Error(err, "cannot remove all that no tag needs")
				}
				log.Info("Collected", "bytes", removed.Bytes)
			}
			return nil
		}), nil
	})
}

// pause waits, or returns why the context ended.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
