// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"diwan.dev/diwan/internal/platform/laptop"
)

// up returns the command that runs the local cluster.
func (a *app) up() *cobra.Command {
	var flags upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run the local cluster until interrupted",
		Long: `Up runs the local cluster: a Kubernetes API server with its storage, controllers and
scheduler, and a node that runs Pods as processes on this machine. Unfinished
experiments resume. Ctrl-C stops the cluster; the next start continues where it stopped.

` + storeHelp,
		Example: `  diwan up &
  diwan kubectl get pods

  # Use the kubeconfig with other tools.
  export KUBECONFIG=~/.local/share/diwan/kubeconfig`,
		Args:              NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			if a.options.remote() {
				return Usagef("--context and --kubeconfig name a cluster that is already running: omit them")
			}
			if err := a.options.enter(); err != nil {
				return err
			}
			ctx, release := Interruptible(context.Background())
			defer release()
			return a.keepUp(ctx, flags)
		},
	}
	a.options.addStore(cmd, "a file in the home")
	a.options.addCapacity(cmd)
	cmd.Flags().IntVar(&flags.port, "port", 0, "loopback port of the API server; 0 reuses the last port, or picks a free one")
	if add := a.house.Laptop.AddFlags; add != nil {
		add(cmd.Flags())
	}
	cmd.Flags().StringVar(&flags.pprof, "pprof", "", "serve Go profiles over HTTP on a Unix socket at this path, only for this user")
	return cmd
}

// upFlags are the flags of `diwan up` alone.
type upFlags struct {
	port  int
	pprof string
}

// keepUp runs the local cluster until ctx ends.
func (a *app) keepUp(ctx context.Context, flags upFlags) error {
	home, err := a.options.homeDir()
	if err != nil {
		return err
	}
	begin := time.Now()
	show := newDisplay(a.streams.Err, a.options.quiet)
	defer show.close()
	config, err := a.options.laptop(home, show)
	if err != nil {
		return err
	}
	config.Port = flags.port
	if flags.pprof != "" {
		stop, err := serveProfiles(flags.pprof)
		if err != nil {
			return err
		}
		defer stop()
	}
	cluster, err := laptop.Start(ctx, config)
	switch {
	case errors.Is(err, laptop.ErrInUse):
		return fmt.Errorf("%w: stop the other process, or choose another home with --home", err)
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	show.close()
	if _, err := fmt.Fprintln(a.streams.Out, upMessage(home, time.Since(begin), a.options.quiet)); err != nil {
		cluster.Stop()
		return fmt.Errorf("cannot write to standard output: %w", err)
	}
	select {
	case <-ctx.Done():
		if !a.options.quiet {
			fmt.Fprintln(a.streams.Err, "stopping (Ctrl-C again to stop at once) …")
		}
		cluster.Stop()
		return nil
	case err := <-cluster.Failed():
		cluster.Stop()
		return fmt.Errorf("the local cluster failed: %w", err)
	}
}

// upMessage is what `diwan up` prints once the cluster is ready.
func upMessage(home laptop.Home, after time.Duration, quiet bool) string {
	if quiet {
		return home.Kubeconfig()
	}
	return fmt.Sprintf(`ready after %.1fs

  diwan run FILE           run a manifest here
  diwan kubectl get pods   look at what is there
  export KUBECONFIG=%s
                           for any other client
  logs                     %s
  diwan's own log          %s

Ctrl-C stops.`, after.Seconds(), home.Kubeconfig(), home.Logs(), home.Path("diwan.log"))
}
