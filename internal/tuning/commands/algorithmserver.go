// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/cli"
	"diwan.dev/diwan/internal/platform/domain"
	"diwan.dev/diwan/internal/tuning"
	"diwan.dev/diwan/internal/tuning/algorithm/server"
	"diwan.dev/diwan/internal/tuning/earlystopping"
	"diwan.dev/diwan/optimize"
)

// algorithmServer returns the command that offers the search library by gRPC.
func algorithmServer(streams cli.Streams) *cobra.Command {
	var address, name, rule string
	var ruleSettings map[string]string
	command := &cobra.Command{
		Use:   "algorithm-server",
		Short: "Serve the search algorithms through Katib's gRPC services",
		Long: `Algorithm-server implements Katib's services Suggestion and EarlyStopping, so that Katib's
own controller, or any other program, can search with Diwan's algorithms. It is
stateless: a response depends only on the request.`,
		Example: `  # Every algorithm, for programs on this machine.
  diwan algorithm-server

  # As the service of one algorithm, for Katib on a cluster.
  diwan algorithm-server --address :6789 --algorithm tpe

  # As Katib's early stopping service, with a rule that Katib does not have.
  diwan algorithm-server --address :6788 --early-stopping percentile --early-stopping-settings percentile=25`,
		Args:              cli.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			if known := algorithmNames(); name != "" && !slices.Contains(known, name) {
				return cli.Usagef("cannot use --algorithm %s: must be one of %s", name, strings.Join(known, ", "))
			}
			stopping, err := pinnedRule(rule, ruleSettings)
			if err != nil {
				return err
			}
			ctx, release := cli.Interruptible(context.Background())
			defer release()
			listener, err := net.Listen("tcp", address)
			if err != nil {
				return fmt.Errorf("cannot listen: %w", err)
			}
			if _, err := fmt.Fprintf(streams.Out, "ready at %s\n", listener.Addr()); err != nil {
				return err
			}
			trials, err := ownTrials()
			if err != nil {
				return err
			}
			return (&server.Server{Algorithm: name, EarlyStopping: stopping, Trials: trials}).Serve(ctx, listener)
		},
	}
	command.Flags().StringVar(&address, "address", "127.0.0.1:6788", "listen address; anyone who can reach it can use the service")
	command.Flags().StringVar(&name, "algorithm", "", "algorithm to use for every request (default the one that the request names)")
	command.Flags().StringVar(&rule, "early-stopping", "", "early stopping rule to use for every request (default the one that the request names)")
	command.Flags().StringToStringVar(&ruleSettings, "early-stopping-settings", nil, "default settings of that rule, name=value,...")
	return command
}

// pinnedRule returns the early stopping rule that some flags name, nil for none.
func pinnedRule(name string, settings map[string]string) (*v1beta1.EarlyStoppingSpec, error) {
	if name == "" {
		if len(settings) > 0 {
			return nil, cli.Usagef("cannot use --early-stopping-settings: name the rule with --early-stopping")
		}
		return nil, nil
	}
	spec := &v1beta1.EarlyStoppingSpec{AlgorithmName: name}
	for _, setting := range slices.Sorted(maps.Keys(settings)) {
		spec.AlgorithmSettings = append(spec.AlgorithmSettings, v1beta1.EarlyStoppingSetting{Name: setting, Value: settings[setting]})
	}
	if err := earlystopping.Check(spec); err != nil {
		return nil, cli.Usagef("cannot use --early-stopping %s: %w", name, err)
	}
	return spec, nil
}

// namespaceFile tells a Pod its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// ownTrials are the trials of the namespace of the Pod that this runs in, nil
// where it runs in none.
func ownTrials() (*server.Trials, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, nil
	}
	namespace, err := os.ReadFile(namespaceFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read the namespace of this Pod: %w", err)
	}
	scheme, err := domain.NewScheme(domain.Domain{Name: tuning.Name, AddToScheme: tuning.AddToScheme})
	if err != nil {
		return nil, err
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("cannot create a client: %w", err)
	}
	return &server.Trials{Client: api, Namespace: strings.TrimSpace(string(namespace))}, nil
}

func algorithmNames() []string {
	var names []string
	for _, algorithm := range optimize.Known() {
		names = append(names, algorithm.Name)
	}
	return names
}
