// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/internal/platform/cli/apply"
	"diwan.dev/diwan/internal/platform/cli/follow"
	"diwan.dev/diwan/internal/platform/cli/manifest"
	"diwan.dev/diwan/internal/platform/cli/progress"
)

// run returns the command that applies manifests and follows what they start.
func (a *app) run() *cobra.Command {
	r := &runner{app: a}
	command := &cobra.Command{
		Use:   "run FILE...",
		Short: "Apply manifests, follow their progress and show the result",
		Long: `Run applies the objects in manifests and follows those that complete:
Experiments, OptimizationJobs, training jobs of every kind, Jobs and Pods. It starts
the local cluster if none is running, and stops it again when everything is done.

A FILE is a YAML or JSON file with any Kubernetes objects, a directory of such
files, or - for standard input. Programs start in the directory of their manifest;
with --mount, also those that run in images, which then see that directory.

Running the same files again resumes them. Ctrl-C stops gracefully, a second Ctrl-C
stops at once; finished work is kept either way.

--store, as of ` + "`diwan up`" + `, applies if this command starts the local cluster.`,
		Example: `  # Tune a model, and keep the result as JSON.
  diwan run examples/quickstart/experiment.yaml -o json > result.json

  # Delete an earlier run of the same file, and start over.
  diwan run --restart experiment.yaml

  # Run the program beside the manifest inside the image that the manifest names.
  diwan run --mount examples/images/program.yaml

  # The same file on a cluster.
  diwan run --context my-cluster experiment.yaml`,
		Args:              manifestsRequired,
		ValidArgsFunction: completeManifests,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := a.options.enter(); err != nil {
				return err
			}
			ctx, release := Interruptible(context.Background())
			defer release()
			return r.main(ctx, args)
		},
	}
	a.options.addStore(command, "a file in the home")
	a.options.addCapacity(command)
	command.Flags().BoolVar(&r.restart, "restart", false, "delete the objects first, with all their results, and start over")
	command.Flags().BoolVar(&r.mount, "mount", false, "mount the directory of each manifest at its own path in all containers, and start them there")
	return command
}

// runner is one call of `diwan run`.
type runner struct {
	*app
	restart bool
	mount   bool

	files   []string
	objects []manifest.Object
	works   []*progress.Work
	targets []follow.Target
	show    display
}

// main runs the files to completion, in as many clusters as it takes: when another diwan that
// ran the local cluster exits, this one restarts it and continues.
func (r *runner) main(ctx context.Context, files []string) error {
	asJSON, err := r.options.json()
	if err != nil {
		return err
	}
	r.files = files
	if r.objects, err = manifest.Read(files, r.streams.In); err != nil {
		return err
	}
	r.show = newDisplay(r.streams.Err, r.options.quiet)
	defer r.show.close()
	for {
		t, err := r.options.connect(ctx, r.show)
		if err != nil {
			return r.interrupted(ctx, nil, err)
		}
		if r.options.store != "" && t.owned == nil {
			r.show.note("--store has no effect: the cluster is already running, with its own store")
		}
		err = r.inCluster(ctx, t)
		if errors.Is(err, errOwnerEnded) && ctx.Err() == nil {
			t.close()
			r.show.note("the diwan process that ran the local cluster has exited: continuing with a cluster in this process")
			continue
		}
		if err == nil {
			err = r.result(t, asJSON)
		}
		err = r.interrupted(ctx, t, err)
		t.close()
		return err
	}
}

// inCluster applies the objects, unless that is done, and follows them to their end.
func (r *runner) inCluster(ctx context.Context, t *target) error {
	scheme, err := r.house.scheme()
	if err != nil {
		return err
	}
	c, err := client.NewWithWatch(t.config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("cannot create a client: %w", err)
	}
	if r.works == nil {
		if err := r.apply(ctx, t); err != nil {
			return r.because(t, err)
		}
	}
	return r.follow(ctx, t, c)
}

// because prefers the end of the cluster as the reason of an error that it led to.
func (r *runner) because(t *target, err error) error {
	if t.local() && t.owned == nil && t.home.Owner() == 0 {
		return errOwnerEnded
	}
	return err
}

// apply brings the objects into the cluster, and makes a model of each that can be followed.
func (r *runner) apply(ctx context.Context, t *target) error {
	r.show.step("applying " + strings.Join(r.files, " "))
	config := apply.Config{
		Namespace: r.options.namespace, Explicit: r.options.namespace != "",
		CreateNamespaces: t.local(), Tell: r.show.note,
	}
	if config.Namespace == "" {
		config.Namespace = t.namespace
	}
	applier, err := apply.New(t.config, config)
	if err != nil {
		return err
	}
	if t.local() {
		for _, object := range r.objects {
			manifest.SetWorkingDirectory(object.Object, object.Source.Dir)
			if !r.mount {
				continue
			}
			if err := manifest.MountDirectory(object.Object, object.Source.Dir); err != nil {
				return fmt.Errorf("%s: %w", object.Source, err)
			}
		}
	} else if r.mount {
		return errors.New("--mount mounts a directory of this machine, which another cluster does not see: run without --mount, or without --context and --kubeconfig")
	}
	if r.restart {
		r.show.step("deleting objects of earlier runs")
		if err := applier.Delete(ctx, r.objects); err != nil {
			return err
		}
		r.restart = false
	}
	applied, err := applier.Apply(ctx, r.objects)
	if err != nil {
		return err
	}
	r.works = []*progress.Work{}
	for _, object := range applied {
		if !r.house.Followed().Followable(object.GetAPIVersion(), object.GetKind()) {
			continue
		}
		work, err := r.house.Followed().NewWork(object.Unstructured, object.Created, time.Now())
		if err != nil {
			return err
		}
		r.works = append(r.works, work)
		r.targets = append(r.targets, follow.Target{ID: work.ID(), UID: object.GetUID()})
	}
	return nil
}

// follow shows what happens until all works have ended.
func (r *runner) follow(ctx context.Context, t *target, c client.WithWatch) error {
	watching, stop := context.WithCancel(ctx)
	facts := make(chan follow.Fact, 256)
	byID := map[progress.ID]*progress.Work{}
	for _, work := range r.works {
		byID[work.ID()] = work
	}
	wait := r.house.Followed().Watch(watching, c, r.targets, facts)
	defer wait()
	defer stop()

	r.show.open(r.views())
	ticks := time.NewTicker(r.show.interval())
	defer ticks.Stop()
	teller := &teller{target: t, show: r.show, verbose: r.options.verbose, warned: map[string]bool{}}
	var settled <-chan time.Time
	for !r.all((*progress.Work).Settled) {
		if settled == nil && r.all((*progress.Work).Done) {
			settled = time.After(settleTime)
		}
		select {
		case fact := <-facts:
			if warning := fact.Warning(); warning != "" {
				teller.warn(warning)
			}
			for _, event := range fact.Apply(byID[fact.ID], time.Now()) {
				teller.tell(event)
			}
		case <-ticks.C:
			r.show.draw(r.views())
		case <-settled:
			return nil
		case err := <-t.lost:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// settleTime is how long the news of the last trials may lag behind the end of their experiment.
const settleTime = 2 * time.Second

// all reports whether something holds of all works.
func (r *runner) all(holds func(*progress.Work) bool) bool {
	for _, work := range r.works {
		if !holds(work) {
			return false
		}
	}
	return true
}

func (r *runner) views() []progress.View {
	views := make([]progress.View, len(r.works))
	for i, work := range r.works {
		views[i] = work.View(time.Now())
	}
	return views
}

// interrupted tells the user how to resume an interrupted command, and returns err.
func (r *runner) interrupted(ctx context.Context, t *target, err error) error {
	if ctx.Err() == nil || err == nil {
		return err
	}
	r.show.close()
	if t != nil && t.owned != nil {
		fmt.Fprintln(r.streams.Err, "stopping the local cluster (Ctrl-C again to stop at once) …")
	}
	again := "diwan run " + strings.Join(r.files, " ")
	switch {
	case t == nil || r.works == nil:
	case t.owned == nil:
		fmt.Fprintf(r.streams.Err, "the work continues in the cluster; to follow it again: %s\n", again)
	default:
		fmt.Fprintf(r.streams.Err, "finished work is kept; to resume: %s\n", again)
	}
	return errInterrupted
}

// manifestsRequired rejects a command line without files.
func manifestsRequired(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return Usagef("no file specified")
	}
	return nil
}

// completeManifests completes the names of manifests.
func completeManifests(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}
