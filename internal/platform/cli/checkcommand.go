// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"diwan.dev/diwan/internal/platform/cli/check"
	"diwan.dev/diwan/internal/platform/cli/manifest"
	"diwan.dev/diwan/internal/platform/node"
)

// check returns the command that finds missing prerequisites of manifests.
func (a *app) check() *cobra.Command {
	command := &cobra.Command{
		Use:   "check FILE...",
		Short: "Check manifests for missing prerequisites before anything runs",
		Long: `Check reports what would keep the objects in manifests from running: unknown fields and
invalid values; unmapped images, missing programs and scripts; missing Secrets,
ConfigMaps, claims, service accounts and runtimes; CPU, memory and devices that no node
has. It creates nothing.

Objects in the files may refer to each other. With --context or --kubeconfig the
Pods would run elsewhere, so images and programs are not checked.

The exit code is 0 if everything can run, 1 if something is missing.`,
		Example: `  diwan check experiment.yaml
  diwan check --context my-cluster -o json experiment.yaml`,
		Args:              manifestsRequired,
		ValidArgsFunction: completeManifests,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := a.options.enter(); err != nil {
				return err
			}
			ctx, release := Interruptible(context.Background())
			defer release()
			return a.checkFiles(ctx, args)
		},
	}
	a.options.addCapacity(command)
	return command
}

// checkFiles checks the objects in files and prints the results.
func (a *app) checkFiles(ctx context.Context, files []string) error {
	asJSON, err := a.options.json()
	if err != nil {
		return err
	}
	objects, err := manifest.Read(files, a.streams.In)
	if err != nil {
		return err
	}
	t, err := a.options.connect(ctx, quietDisplay{})
	if err != nil {
		return err
	}
	defer t.close()
	scheme, err := a.house.scheme()
	if err != nil {
		return err
	}
	config := check.Config{
		Cluster: t.config, Namespace: a.options.namespaceIn(t), CreatesNamespaces: t.local(),
		Kinds: a.house.Checked(), Scheme: scheme,
	}
	if t.local() {
		if config.Forecast, err = a.forecast(t); err != nil {
			return err
		}
		for _, object := range objects {
			manifest.SetWorkingDirectory(object.Object, object.Source.Dir)
		}
	}
	checker, err := check.New(config)
	if err != nil {
		return err
	}
	results, err := checker.Check(ctx, objects)
	if err != nil {
		return err
	}
	if asJSON {
		err = a.printChecksJSON(results)
	} else {
		a.printChecks(results)
	}
	if err == nil && lacking(results) > 0 {
		return &ExitError{exitFailed}
	}
	return err
}

// forecast is for the node that runs, which sees the variables of the diwan that runs it.
func (a *app) forecast(t *target) (*node.Forecast, error) {
	environ := os.Environ()
	if owner := t.home.Owner(); t.owned == nil && owner != 0 {
		if text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(owner), "environ")); err == nil {
			environ = nil
			for variable := range bytes.SplitSeq(bytes.TrimRight(text, "\x00"), []byte{0}) {
				environ = append(environ, string(variable))
			}
		}
	}
	return a.house.forecast(t.home, environ)
}

// lacking counts the objects that cannot run.
func lacking(results []check.Result) int {
	n := 0
	for _, r := range results {
		if len(r.Lacks) > 0 {
			n++
		}
	}
	return n
}

// printChecks prints what keeps each object from running.
func (a *app) printChecks(results []check.Result) {
	for _, r := range results {
		if len(r.Lacks) == 0 && (len(r.Notes) == 0 || a.options.quiet) {
			continue
		}
		fmt.Fprintf(a.streams.Out, "%s %s from %s\n", r.Object.GetKind(), titleOf(r.Object), r.Object.Source)
		for _, text := range r.Lacks {
			fmt.Fprintf(a.streams.Out, "  problem  %s\n", indented(text))
		}
		if a.options.quiet {
			continue
		}
		for _, text := range r.Notes {
			fmt.Fprintf(a.streams.Out, "  note     %s\n", indented(text))
		}
	}
	if a.options.quiet {
		return
	}
	switch n := lacking(results); {
	case n == 0 && len(results) == 1:
		fmt.Fprintln(a.streams.Out, "it can run")
	case n == 0:
		fmt.Fprintf(a.streams.Out, "all %d objects can run\n", len(results))
	default:
		fmt.Fprintf(a.streams.Out, "%d of %d objects cannot run\n", n, len(results))
	}
}

// titleOf is an object's name, with its namespace if it has one.
func titleOf(object manifest.Object) string {
	name := object.GetName()
	if name == "" {
		name = object.GetGenerateName() + "…"
	}
	if namespace := object.GetNamespace(); namespace != "" {
		return namespace + "/" + name
	}
	return name
}

// indented lines up the lines after the first.
func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n           ") }

// checkReport is the result for an object, as JSON.
type checkReport struct {
	Kind      string   `json:"kind"`
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name"`
	File      string   `json:"file"`
	CanRun    bool     `json:"canRun"`
	Problems  []string `json:"problems"`
	Notes     []string `json:"notes"`
}

func (a *app) printChecksJSON(results []check.Result) error {
	reports := []checkReport{}
	for _, r := range results {
		reports = append(reports, checkReport{
			Kind: r.Object.GetKind(), Namespace: r.Object.GetNamespace(), Name: r.Object.GetName(), File: r.Object.Source.File,
			CanRun: len(r.Lacks) == 0, Problems: append([]string{}, r.Lacks...), Notes: append([]string{}, r.Notes...),
		})
	}
	encoder := json.NewEncoder(a.streams.Out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(reports); err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	return nil
}
