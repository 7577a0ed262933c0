// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"sync"

	"github.com/spf13/cobra"

	"diwan.dev/diwan/internal/models/store"
	"diwan.dev/diwan/internal/models/transfer"
	"diwan.dev/diwan/internal/platform/cli"
)

// serial makes a function for several callers at once.
func serial(f func(done, total int64)) func(done, total int64) {
	var mu sync.Mutex
	return func(done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		f(done, total)
	}
}

// watch shows a transfer. last is how far it was when it ended.
func (s *session) watch(what string, o *transfer.Options) (end func() (last transfer.Progress)) {
	show := cli.NewTransfer(s.streams.Err, what, s.Quiet)
	var mu sync.Mutex
	var last transfer.Progress
	o.Progress = func(p transfer.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if p.Complete >= last.Complete {
			last = p
		}
		show.Show("%d of %d blobs, %s of %s", p.Complete, p.Blobs, size(p.Bytes), size(p.Total))
	}
	return func() transfer.Progress {
		mu.Lock()
		defer mu.Unlock()
		show.End()
		return last
	}
}

// moved is a transfer in JSON.
type moved struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
	Bytes  int64  `json:"bytes"`
	// Skipped are bytes that were there already.
	Skipped int64 `json:"skippedBytes"`
}

func (s *session) printMoved(n store.Name, digest string, p transfer.Progress) error {
	if !s.JSON && p.Skipped > 0 {
		s.note("%s of %s were there already", size(p.Skipped), size(p.Total))
	}
	return s.print(moved{n.String(), digest, p.Total, p.Skipped}, fmt.Sprintf("%s@%s", n, digest))
}

// push returns the command that pushes versions.
func push(streams cli.Streams) *cobra.Command {
	var blobs int
	command := &cobra.Command{
		Use:   "push NAME [DESTINATION]",
		Short: "Push a version to a registry",
		Long: `Push sends a version of the home's store to a registry, under its own name or another. A
name without a host is in the home's own registry. What the registry has is not sent, and
what an interrupted push has sent is not sent again where the registry allows that.`,
		Example: `  diwan model push mnist:v1
  diwan model push mnist:v1 ghcr.io/acme/mnist:v1`,
		Args:              arguments(1, 2, "a name and at most one destination"),
		ValidArgsFunction: complete(0, 0),
		RunE: with(streams, func(ctx context.Context, s *session, args []string) error {
			v, err := s.find(args[0])
			if err != nil {
				return err
			}
			to, err := name(args[len(args)-1])
			if err != nil {
				return err
			}
			o, at, done, err := s.registries(ctx, to)
			if err != nil {
				return err
			}
			defer done()
			to, o.Blobs = at(to), blobs
			end := s.watch(to.String(), &o)
			err = transfer.Push(ctx, s.store, v, to, o)
			last := end()
			if err != nil {
				return err
			}
			return s.printMoved(to, string(v.Manifest.Digest), last)
		}),
	}
	command.Flags().IntVar(&blobs, "parallel", 0, "blobs to move at a time (default 4)")
	return command
}

// pull returns the command that pulls models.
func pull(streams cli.Streams) *cobra.Command {
	var blobs int
	command := &cobra.Command{
		Use:   "pull NAME...",
		Short: "Pull models from registries into the home",
		Long: `Pull brings models into the home's store, by way of the mirrors in registries.yaml. Files
that any version in the store has are not fetched, and what an interrupted pull has
fetched is not fetched again.`,
		Example: `  diwan model pull ghcr.io/acme/mnist:v1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("no model specified")
			}
			return nil
		},
		RunE: with(streams, func(ctx context.Context, s *session, args []string) error {
			all, err := names(args)
			if err != nil {
				return err
			}
			o, at, done, err := s.registries(ctx, all...)
			if err != nil {
				return err
			}
			defer done()
			o.Blobs = blobs
			for _, n := range all {
				end := s.watch(n.String(), &o)
				v, err := transfer.Pull(ctx, s.store, at(n), n, o)
				last := end()
				if err != nil {
					return err
				}
				if err := s.printMoved(n, string(v.Manifest.Digest), last); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	command.Flags().IntVar(&blobs, "parallel", 0, "blobs to move at a time (default 4)")
	return command
}

// copyCommand returns the command that copies models between registries.
func copyCommand(streams cli.Streams) *cobra.Command {
	var blobs int
	command := &cobra.Command{
		Use:     "copy FROM TO",
		Aliases: []string{"cp"},
		Short:   "Copy a model from one registry to another",
		Long: `Copy sends a model and cosign's signatures of it from one registry to another, or to another
repository of the same, without keeping it here.`,
		Example: `  diwan model copy ghcr.io/acme/mnist:v1 harbor.corp.example/ml/mnist:v1`,
		Args:    arguments(2, 2, "two names"),
		RunE: with(streams, func(ctx context.Context, s *session, args []string) error {
			both, err := names(args)
			if err != nil {
				return err
			}
			o, at, done, err := s.registries(ctx, both...)
			if err != nil {
				return err
			}
			defer done()
			o.Blobs = blobs
			end := s.watch(both[1].String(), &o)
			digest, err := transfer.Copy(ctx, at(both[0]), at(both[1]), o)
			last := end()
			if err != nil {
				return err
			}
			return s.printMoved(at(both[1]), string(digest), last)
		}),
	}
	command.Flags().IntVar(&blobs, "parallel", 0, "blobs to move at a time (default 4)")
	return command
}
