// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/internal/platform/cli/podlog"
)

// logs returns the command that prints the log for a name.
func (a *app) logs() *cobra.Command {
	var options podlog.Options
	var container string
	command := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print the log of a trial, job, experiment or Pod",
		Long: `Logs prints the output of a trial, training job, TrainJob, Job or Pod. For an
experiment it prints the log of the best trial, or of the newest one while none is
best; for a job with several Pods that of the leading one: the master, the
launcher, the first worker. The choice and the alternatives are printed on standard error.

NAME can be KIND/NAME, such as trainjob/digits, if several objects have the name.
On the local cluster the logs of deleted Pods are found, too.`,
		Example: `  # The best trial of an experiment, and one trial.
  diwan logs digits
  diwan logs digits-0irjb96n

  # Follow a training job.
  diwan logs -f trainjob/digits

  # Another container, or another Pod of the same job.
  diwan logs digits -c sidecar
  diwan logs digits-worker-1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return Usagef("want one name, not %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: a.completeLogs,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := a.options.enter(); err != nil {
				return err
			}
			ctx, release := Interruptible(context.Background())
			defer release()
			t, err := a.options.connect(ctx, quietDisplay{})
			if err != nil {
				return err
			}
			defer t.close()
			return a.printLog(ctx, t, podlog.Query{Name: args[0], Container: container, Follow: options.Follow}, options)
		},
	}
	flags := command.Flags()
	flags.BoolVarP(&options.Follow, "follow", "f", false, "stream the log until the container ends; for an experiment, follow a running trial")
	flags.BoolVarP(&options.Previous, "previous", "p", false, "print the log of the container before its last restart")
	flags.Int64Var(&options.Tail, "tail", -1, "number of lines to print from the end of the log; -1 for all")
	flags.StringVarP(&container, "container", "c", "", "container to show (default the main one)")
	return command
}

// printLog finds a log and prints it.
func (a *app) printLog(ctx context.Context, t *target, query podlog.Query, options podlog.Options) error {
	query.Namespace = a.options.namespaceIn(t)
	finder, err := a.newFinder(t)
	if err != nil {
		return err
	}
	log, err := finder.Find(ctx, query)
	if err != nil {
		return err
	}
	notice := func(text string) {
		if !a.options.quiet {
			fmt.Fprintln(a.streams.Err, text)
		}
	}
	for _, line := range chosen(log) {
		notice(line)
	}
	kube, err := kubernetes.NewForConfig(t.config)
	if err != nil {
		return fmt.Errorf("cannot create a client: %w", err)
	}
	return podlog.Print(ctx, kube.CoreV1(), log, options, a.streams.Out, notice)
}

// mostOthers is how many Pods and containers are named that could have been chosen.
const mostOthers = 8

// chosen describes the choice made for the user, if there was one.
func chosen(log *podlog.Log) []string {
	var lines []string
	if log.Why != "" {
		lines = append(lines, log.Why)
	}
	if log.Why != "" || len(log.Others) > 0 {
		lines = append(lines, fmt.Sprintf("pod %s, container %s", log.Pod, log.Container))
	}
	if n := len(log.Others); n > 0 {
		text := strings.Join(log.Others[:min(n, mostOthers)], ", ")
		if n > mostOthers {
			text += fmt.Sprintf(", and %d more", n-mostOthers)
		}
		lines = append(lines, "others to choose from: "+text)
	}
	return lines
}

func (a *app) newFinder(t *target) (*podlog.Finder, error) {
	scheme, err := a.house.scheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(t.config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("cannot create a client: %w", err)
	}
	finder := &podlog.Finder{Client: c, Kinds: a.house.Logged()}
	if t.local() {
		finder.Logs = t.home.Logs()
	}
	return finder, nil
}

// completeLogs completes the names of objects with logs, if a cluster is
// running.
func (a *app) completeLogs(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	home, err := a.options.homeDir()
	if err != nil || !a.options.remote() && home.Owner() == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, release := Interruptible(context.Background())
	defer release()
	t, err := a.options.connect(ctx, quietDisplay{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer t.close()
	finder, err := a.newFinder(t)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return finder.Names(ctx, a.options.namespaceIn(t)), cobra.ShellCompDirectiveNoFileComp
}
