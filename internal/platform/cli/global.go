// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"

	"diwan.dev/diwan/internal/platform/laptop"
)

// Global are the flags of all commands, for commands of domains.
type Global struct {
	// Home is the home of the local cluster.
	Home laptop.Home
	// JSON: the result is to be JSON.
	JSON bool
	// Quiet: only the result and errors are to be shown.
	Quiet bool
}

// GlobalOf reads the flags of all commands, as they were given to one.
func GlobalOf(command *cobra.Command) (Global, error) {
	o, err := optionsOf(command)
	if err != nil {
		return Global{}, err
	}
	asJSON, err := o.json()
	if err != nil {
		return Global{}, err
	}
	home, err := o.homeDir()
	return Global{Home: home, JSON: asJSON, Quiet: o.quiet}, err
}

// optionsOf reads the flags of all commands, as they were given to one.
func optionsOf(command *cobra.Command) (o options, err error) {
	flags := command.Flags()
	for name, to := range map[string]*string{
		"home": &o.home, "namespace": &o.namespace, "context": &o.context, "kubeconfig": &o.kubeconfig, "output": &o.output,
	} {
		if *to, err = flags.GetString(name); err != nil {
			return o, err
		}
	}
	o.quiet, err = flags.GetBool("quiet")
	return o, err
}
