// SPDX-License-Identifier: Apache-2.0

// Package commands is what training adds to the command line: how its kinds are followed, how the logs
// of their Pods are found, which Pods a TrainJob would have, and what this binary is in Pods: agent of
// elastic training, initializer, deliverer of kubectl, ssh.
package commands

import (
	"github.com/spf13/cobra"

	"diwan.dev/diwan/internal/platform/cli"
	"diwan.dev/diwan/internal/training"
	"diwan.dev/diwan/internal/training/laptop"
	"diwan.dev/diwan/internal/training/podssh"
)

// Wing is training on the command line.
func Wing() cli.Wing {
	domain := training.Domain(training.Options{})
	programs := map[string]cli.Program{}
	for _, name := range podssh.Programs() {
		programs[name] = func(program string, args []string, streams cli.Streams) int {
			return podssh.Main(program, args, streams.In, streams.Out, streams.Err)
		}
	}
	return cli.Wing{
		Name: domain.Name, AddToScheme: domain.AddToScheme, Kinds: domain.Kinds,
		Commands: []func(cli.Streams) *cobra.Command{elastic, deliverKubectl, initialize},
		Programs: programs,
		Follow:   followed(), Logs: logged(domain.Kinds), Check: checked(),
		Images: laptop.Images(), Decorators: laptop.Decorators(),
		Operator: newOperator(),
	}
}
