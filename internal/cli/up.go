// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"diwan.dev/diwan/internal/localcluster"
)

// up returns the command that runs the local cluster.
func (a *app) up() *cobra.Command {
	var flags upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run the local cluster until interrupted",
		Long: `Up runs the local cluster: a Kubernetes API server with its storage, controllers and
scheduler, and a node that runs Pods as processes of this machine. Experiments that
were left unfinished go on. Ctrl-C stops it; the next start goes on where it was.

` + storeHelp,
		Example: `  diwan up &
  diwan kubectl get pods

  # The kubeconfig is for every other tool.
  export KUBECONFIG=~/.local/share/diwan/kubeconfig`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			if a.options.remote() {
				return usagef("--context and --kubeconfig name a cluster that runs already: leave them out")
			}
			if err := a.options.enter(); err != nil {
				return err
			}
			ctx, release := interruptible(context.Background())
			defer release()
			return a.keepUp(ctx, flags)
		},
	}
	a.options.addStore(cmd, "a file in the home")
	a.options.addCPUs(cmd)
	cmd.Flags().IntVar(&flags.port, "port", 0, "loopback port of the API server; 0 keeps the last one, or takes a free one")
	cmd.Flags().StringVar(&flags.gangScheduler, "gang-scheduler-name", "", "place the Pods of every training job all or none, as this scheduler does: kubernetes, volcano or scheduler-plugins-scheduler; if empty, those of jobs with a schedulingPolicy")
	cmd.Flags().StringVar(&flags.pprof, "pprof", "", "serve Go's profiles on this loopback address, such as 127.0.0.1:6060")
	return cmd
}

// upFlags are the flags of `diwan up` alone.
type upFlags struct {
	port          int
	gangScheduler string
	pprof         string
}

// keepUp runs the local cluster until ctx ends.
func (a *app) keepUp(ctx context.Context, flags upFlags) error {
	home, err := a.options.homeDir()
	if err != nil {
		return err
	}
	store, err := a.options.storeLocation()
	if err != nil {
		return err
	}
	begin := time.Now()
	show := newDisplay(a.streams.Err, a.options.quiet)
	defer show.close()
	config := localcluster.DefaultConfig(home)
	config.Progress, config.Notice = show.step, show.note
	config.Port = flags.port
	config.Store = store
	config.CPUs = int(a.options.cpus)
	config.GangScheduler = flags.gangScheduler
	if flags.pprof != "" {
		stop, err := serveProfiles(flags.pprof)
		if err != nil {
			return err
		}
		defer stop()
	}
	cluster, err := localcluster.Start(ctx, config)
	switch {
	case errors.Is(err, localcluster.ErrInUse):
		return fmt.Errorf("%w: stop that one, or choose another home with --home", err)
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
		return fmt.Errorf("the local cluster ended: %w", err)
	}
}

// upMessage is what `diwan up` prints once the cluster is ready.
func upMessage(home localcluster.Home, after time.Duration, quiet bool) string {
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
