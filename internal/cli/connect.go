// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"diwan.dev/diwan/internal/localcluster"
)

// target is the cluster that a command works against: the user's own, a local one that another
// diwan runs, or a local one that this command runs.
type target struct {
	config *rest.Config
	// namespace is the default namespace of the kubeconfig's context; "" where it names none.
	namespace string
	// home is that of a local cluster; "" for the user's own.
	home localcluster.Home
	// owned is the local cluster that this command runs; nil otherwise.
	owned *localcluster.Cluster
	// lost yields why the cluster ended by itself.
	lost <-chan error
	// close leaves the cluster, and stops it if it is owned.
	close func()
}

// local reports whether Pods run on this machine.
func (t *target) local() bool { return t.home != "" }

// errOwnerEnded says that the diwan that ran the local cluster has ended.
var errOwnerEnded = errors.New("the diwan that ran the local cluster has ended")

// connect finds the cluster that the flags name. Where that is the local one and none runs, it
// starts it. show is told what takes time, and what lacks.
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
		if !errors.Is(err, localcluster.ErrInUse) {
			return t, err
		}
		t, err = o.join(ctx, home)
		if !errors.Is(err, errOwnerEnded) {
			return t, err
		}
	}
}

// enter goes on as root of a user namespace, where this command may come to run the local cluster for a user
// who is not root: Pods then have networks of their own. Where that is not to be had, the
// network says so. It executes this program anew, so it comes before all else.
func (o *options) enter() error {
	if o.remote() {
		return nil
	}
	home, err := o.homeDir()
	if err == nil {
		localcluster.Enter(home)
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
func (o *options) start(ctx context.Context, home localcluster.Home, show display) (*target, error) {
	store, err := o.storeLocation()
	if err != nil {
		return nil, err
	}
	config := localcluster.DefaultConfig(home)
	config.Progress, config.Notice = show.step, show.note
	config.Store = store
	config.CPUs = int(o.cpus)
	cluster, err := localcluster.Start(ctx, config)
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
func (o *options) join(ctx context.Context, home localcluster.Home) (*target, error) {
	o.silenceLogs()
	for {
		owner := home.Owner()
		if owner == 0 {
			return nil, errOwnerEnded
		}
		config, err := localcluster.Join(home)
		if err == nil && ready(ctx, config) {
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

// ready reports whether a local cluster accepts experiments: their kind is what it serves last.
func ready(ctx context.Context, config *rest.Config) bool {
	config = rest.CopyConfig(config)
	config.Timeout = 2 * time.Second
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return false
	}
	resources := &metav1.APIResourceList{}
	err = client.RESTClient().Get().AbsPath("/apis/kubeflow.org/v1beta1").Do(ctx).Into(resources)
	return err == nil && len(resources.APIResources) > 0
}

// awaitEnd tells on lost when the process that owns the home does not any more.
func awaitEnd(ctx context.Context, home localcluster.Home, owner int, lost chan<- error) {
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

// silenceLogs keeps the client libraries' own log off the terminal, unless it is asked for. The
// local cluster writes it to a file where this command runs it.
func (o *options) silenceLogs() {
	if o.verbose {
		return
	}
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
}
