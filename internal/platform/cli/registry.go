// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/spf13/cobra"

	"diwan.dev/diwan/internal/platform/laptop"
)

// registry returns the commands about the home's own registry.
func (a *app) registry() *cobra.Command {
	command := &cobra.Command{
		Use:   "registry",
		Short: "Show the registry of this machine and what is in it",
		Long: `The home has an OCI registry for images, models and other artifacts. It answers to this
user only, while the local cluster runs, at an address that stays the same. Pods and
` + "`diwan images push`" + ` need no credentials for it; other programs log in with the token in
registry-token in the home. What no tag needs is removed after a day.`,
		Example: `  diwan registry
  diwan registry -o json`,
		Args:              NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			asJSON, err := a.options.json()
			if err != nil {
				return err
			}
			client, done, err := a.registryClient(command.Context())
			if err != nil {
				return err
			}
			defer done()
			listing, err := client.list()
			if err != nil {
				return err
			}
			if asJSON {
				out := json.NewEncoder(a.streams.Out)
				out.SetIndent("", "  ")
				return out.Encode(listing)
			}
			return a.printRegistry(listing)
		},
	}
	command.AddCommand(a.registryRemove())
	return command
}

// registryRemove returns the command that removes tags.
func (a *app) registryRemove() *cobra.Command {
	return &cobra.Command{
		Use:     "remove REPOSITORY[:TAG]...",
		Aliases: []string{"rm"},
		Short:   "Remove tags from the registry of this machine",
		Long: `Remove removes a tag, or all tags of a repository. What no other tag needs is removed
from the disk after a day.`,
		Example: `  diwan registry remove acme/train:v1
  diwan registry remove acme/train`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return Usagef("no repository specified")
			}
			return nil
		},
		ValidArgsFunction: a.completeRegistry,
		RunE: func(command *cobra.Command, args []string) error {
			client, done, err := a.registryClient(command.Context())
			if err != nil {
				return err
			}
			defer done()
			for _, arg := range args {
				removed, err := client.remove(strings.TrimPrefix(arg, client.at.Host+"/"))
				if err != nil {
					return fmt.Errorf("cannot remove %s: %w", arg, err)
				}
				for _, tag := range removed {
					if _, err := fmt.Fprintln(a.streams.Out, tag); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
}

// completeRegistry completes what the registry of a running cluster has.
func (a *app) completeRegistry(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	home, err := a.options.homeDir()
	if err != nil || home.Owner() == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(command.Context(), 5*time.Second)
	defer cancel()
	client, done, err := a.registryClient(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer done()
	listing, err := client.list()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, repository := range listing.Repositories {
		for _, tag := range repository.Tags {
			names = append(names, repository.Name+":"+tag.Tag)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// registryListing is what the registry has.
type registryListing struct {
	Host         string               `json:"host"`
	TokenFile    string               `json:"tokenFile"`
	Repositories []registryRepository `json:"repositories"`
}

type registryRepository struct {
	Name string        `json:"name"`
	Tags []registryTag `json:"tags"`
}

type registryTag struct {
	Tag       string `json:"tag"`
	Digest    string `json:"digest"`
	MediaType string `json:"mediaType"`
	Size      int64  `json:"size"` // in bytes, of all that it needs
}

func (a *app) printRegistry(l registryListing) error {
	out := tabwriter.NewWriter(a.streams.Out, 0, 0, 3, ' ', 0)
	if !a.options.quiet {
		token := "'" + strings.ReplaceAll(l.TokenFile, "'", `'\''`) + "'"
		fmt.Fprintf(out, "The registry is %s while `diwan up` runs. Log in with one of\n", l.Host)
		for _, client := range []string{"docker login", "podman login --tls-verify=false", "oras login --plain-http"} {
			fmt.Fprintf(out, "  %s -u diwan --password-stdin %s < %s\n", client, l.Host, token)
		}
		fmt.Fprintln(out)
	}
	if len(l.Repositories) == 0 && !a.options.quiet {
		fmt.Fprintln(out, "It is empty.")
	}
	if len(l.Repositories) > 0 {
		fmt.Fprintln(out, "REPOSITORY\tTAG\tDIGEST\tSIZE")
	}
	for _, repository := range l.Repositories {
		if len(repository.Tags) == 0 {
			fmt.Fprintf(out, "%s\t-\t-\t-\n", repository.Name)
		}
		for _, tag := range repository.Tags {
			fmt.Fprintf(out, "%s\t%s\t%.19s\t%s\n", repository.Name, tag.Tag, tag.Digest, megabytes(tag.Size))
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("cannot write the list: %w", err)
	}
	return nil
}

// registryClient asks the home's registry.
type registryClient struct {
	at       laptop.Registry
	registry name.Registry
	options  []remote.Option
}

// registryClient returns a client of the home's registry, which is there until done is called.
func (a *app) registryClient(ctx context.Context) (*registryClient, func(), error) {
	home, err := a.options.homeDir()
	if err != nil {
		return nil, nil, err
	}
	at, done, err := laptop.UseRegistry(ctx, home)
	if err != nil {
		return nil, nil, err
	}
	registry, err := name.NewRegistry(at.Host, name.Insecure)
	if err != nil {
		done()
		return nil, nil, err
	}
	return &registryClient{at, registry, []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(at)}}, done, nil
}

// list lists what the registry has.
func (c *registryClient) list() (registryListing, error) {
	all := registryListing{Host: c.at.Host, TokenFile: c.at.TokenFile, Repositories: []registryRepository{}}
	names, err := remote.Catalog(context.Background(), c.registry, c.options...)
	if err != nil {
		return all, fmt.Errorf("cannot list the registry: %w", err)
	}
	for _, repository := range names {
		tags, err := remote.List(c.registry.Repo(repository), c.options...)
		if isGone(err) {
			continue // it was removed meanwhile
		}
		if err != nil {
			return all, fmt.Errorf("cannot list %s: %w", repository, err)
		}
		r := registryRepository{Name: repository, Tags: []registryTag{}}
		for _, tag := range tags {
			at, err := remote.Get(c.registry.Repo(repository).Tag(tag), c.options...)
			if isGone(err) {
				continue
			}
			if err == nil {
				t := registryTag{Tag: tag, Digest: at.Digest.String(), MediaType: string(at.MediaType)}
				t.Size, err = c.size(c.registry.Repo(repository), at, 0)
				r.Tags = append(r.Tags, t)
			}
			if err != nil {
				return all, fmt.Errorf("cannot look at %s:%s: %w", repository, tag, err)
			}
		}
		all.Repositories = append(all.Repositories, r)
	}
	return all, nil
}

// maxDepth bounds how many indexes deep a manifest is looked at.
const maxDepth = 4

// size is how many bytes a manifest and all that it needs have.
func (c *registryClient) size(in name.Repository, manifest *remote.Descriptor, depth int) (int64, error) {
	var needs struct {
		Config    v1.Descriptor
		Layers    []v1.Descriptor
		Manifests []v1.Descriptor
	}
	if err := json.Unmarshal(manifest.Manifest, &needs); err != nil {
		return 0, err
	}
	total := int64(len(manifest.Manifest)) + needs.Config.Size
	for _, layer := range needs.Layers {
		total += layer.Size
	}
	for _, child := range needs.Manifests {
		if depth >= maxDepth {
			break
		}
		at, err := remote.Get(in.Digest(child.Digest.String()), c.options...)
		if err != nil {
			return 0, err
		}
		size, err := c.size(in, at, depth+1)
		if err != nil {
			return 0, err
		}
		total += size
	}
	return total, nil
}

// remove removes a tag, as REPOSITORY:TAG, or all of a repository, and returns what it removed.
func (c *registryClient) remove(text string) ([]string, error) {
	repository, tag, tagged := strings.Cut(text, ":")
	in, err := name.NewRepository(c.at.Host+"/"+repository, name.Insecure, name.StrictValidation)
	if err != nil {
		return nil, Usagef("%v", err)
	}
	tags := []string{tag}
	if !tagged {
		if tags, err = remote.List(in, c.options...); err != nil && !isGone(err) {
			return nil, err
		}
	}
	var removed []string
	for _, tag := range tags {
		one, err := name.NewTag(in.Name()+":"+tag, name.Insecure, name.StrictValidation)
		if err != nil {
			return removed, Usagef("%v", err)
		}
		if err := remote.Delete(one, c.options...); err != nil && !isGone(err) {
			return removed, err
		} else if err == nil {
			removed = append(removed, one.RepositoryStr()+":"+one.TagStr())
		}
	}
	if len(removed) == 0 {
		return nil, errors.New("the registry has no such tag; `diwan registry` lists what it has")
	}
	return removed, nil
}

// isGone reports whether the registry does not have what it was asked for.
func isGone(err error) bool {
	var answer *transport.Error
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}
