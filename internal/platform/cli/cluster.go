// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
)

// Cluster is the way into a cluster.
type Cluster struct {
	Config *rest.Config
	// Namespace is that of objects that specify none.
	Namespace string
	// Lost receives why a local cluster is gone; nil for another.
	Lost <-chan error

	close func()
}

// Close leaves the cluster, which runs on.
func (c *Cluster) Close() { c.close() }

// Join finds the cluster that the flags of all commands select, as they were given to one: the
// user's, or the local one, which must be running.
func Join(ctx context.Context, command *cobra.Command) (*Cluster, error) {
	o, err := optionsOf(command)
	if err != nil {
		return nil, err
	}
	t, err := o.joinSelected(ctx)
	if err != nil {
		return nil, err
	}
	return &Cluster{Config: t.config, Namespace: o.namespaceIn(t), Lost: t.lost, close: t.close}, nil
}

func (o *options) joinSelected(ctx context.Context) (*target, error) {
	if o.remote() {
		return o.connectRemote()
	}
	home, err := o.homeDir()
	if err != nil {
		return nil, err
	}
	t, err := o.join(ctx, home)
	if errors.Is(err, errOwnerEnded) {
		return nil, fmt.Errorf("no local cluster runs in %s: start it with `diwan up`, or name another by --context or --kubeconfig", home)
	}
	return t, err
}
