// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"diwan.dev/diwan/internal/platform/domain"
	"diwan.dev/diwan/internal/platform/laptop"
)

// target is the cluster that a command works against: the user's own, a local one that another
// diwan runs, or a local one that this command runs.
type target struct {
	config *rest.Config
	// namespace is the default namespace of the kubeconfig's context; "" where it names none.
	namespace string
	// home is that of a local cluster; "" for the user's own.
	home laptop.Home
	// owned is the local cluster that this command runs; nil otherwise.
	owned *laptop.Cluster
	// lost receives why the cluster ended by itself.
	lost <-chan error
	// close leaves the cluster, and stops it if it is owned.
	close func()
}

// local reports whether Pods run on this machine.
func (t *target) local() bool { return t.home != "" }

// errOwnerEnded says that the diwan process that ran the local cluster has exited.
var errOwnerEnded = errors.New("the diwan process that ran the local cluster has exited")

// connect finds the cluster selected by the flags. If that is the local one and none is
// running, it starts it. show displays slow steps and problems.
func (o *options) connect(ctx context.Context, show display) (*target, error) {
	if o.remote() {
		return o.connectRemote()
	}
	home, err := o.homeDir()
	if err != nil {
		return nil, err
	}
	for {
		t, err := o.start(ctx, home, show)
		if !errors.Is(err, laptop.ErrInUse) {
			return t, err
		}
		t, err = o.join(ctx, home)
		if !errors.Is(err, errOwnerEnded) {
			return t, err
		}
	}
}

// namespaceIn is the namespace of objects that specify none.
func (o *options) namespaceIn(t *target) string {
	return cmp.Or(o.namespace, t.namespace, metav1.NamespaceDefault)
}

// enter continues as root of a user namespace, if this command may run the local cluster for an unprivileged
// user: then Pods have their own networks. If that is not possible, the network reports it. It re-executes
// this program, so it must come first.
func (o *options) enter() error {
	if o.remote() {
		return nil
	}
	home, err := o.homeDir()
	if err == nil {
		laptop.Enter(home)
	}
	return err
}

// connectRemote is the way into the user's cluster.
func (o *options) connectRemote() (*target, error) {
	loader := o.clientConfig()
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	o.silenceLogs()
	config.QPS, config.Burst, config.UserAgent = 50, 100, "diwan"
	return &target{config: config, namespace: namespace, close: func() {}}, nil
}

// start runs the local cluster within this command.
func (o *options) start(ctx context.Context, home laptop.Home, show display) (*target, error) {
	config, err := o.laptop(home, show)
	if err != nil {
		return nil, err
	}
	cluster, err := laptop.Start(ctx, config)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	return &target{config: cluster.RESTConfig(), home: home, owned: cluster, lost: cluster.Failed(), close: cluster.Stop}, nil
}

// join is the way into the local cluster that another diwan runs, once it is ready. It fails with
// errOwnerEnded where that diwan is gone.
func (o *options) join(ctx context.Context, home laptop.Home) (*target, error) {
	o.silenceLogs()
	for {
		owner := home.Owner()
		if owner == 0 {
			return nil, errOwnerEnded
		}
		config, err := laptop.Join(home)
		if errors.Is(err, laptop.ErrUntrusted) {
			return nil, err
		}
		if err == nil && ready(ctx, config, o.kinds) {
			watch, stop := context.WithCancel(ctx)
			lost := make(chan error, 1)
			go awaitEnd(watch, home, owner, lost)
			return &target{config: config, home: home, lost: lost, close: stop}, nil
		}
		if !pause(ctx, 50*time.Millisecond) {
			return nil, context.Cause(ctx)
		}
	}
}

// ready reports whether a local cluster serves these kinds, which it does last.
func ready(ctx context.Context, config *rest.Config, kinds []domain.Kind) bool {
	config = rest.CopyConfig(config)
	config.Timeout = 2 * time.Second
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return false
	}
	served := map[schema.GroupVersion]*metav1.APIResourceList{}
	for _, k := range kinds {
		of := k.GroupVersion()
		if served[of] == nil {
			if served[of], err = client.ServerResourcesForGroupVersion(of.String()); err != nil {
				return false
			}
		}
		if !slices.ContainsFunc(served[of].APIResources, func(r metav1.APIResource) bool { return r.Name == k.Plural }) {
			return false
		}
	}
	return true
}

// awaitEnd signals on lost when the process that owns the home no longer does.
func awaitEnd(ctx context.Context, home laptop.Home, owner int, lost chan<- error) {
	for pause(ctx, 250*time.Millisecond) {
		if home.Owner() != owner {
			lost <- errOwnerEnded
			return
		}
	}
}

// pause waits, and reports whether ctx is still on after that.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// silenceLogs keeps the client libraries' log off the terminal, unless requested. If this
// command runs the local cluster, that writes it to a file.
func (o *options) silenceLogs() {
	if o.verbose {
		return
	}
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
}
