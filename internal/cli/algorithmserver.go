// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/internal/algorithm/server"
	"diwan.dev/diwan/internal/controller"
	"diwan.dev/diwan/optimize"
)

// algorithmServer returns the command that offers the search library by gRPC.
func (a *app) algorithmServer() *cobra.Command {
	var address, name string
	command := &cobra.Command{
		Use:   "algorithm-server",
		Short: "Offer the search algorithms by Katib's gRPC services",
		Long: `Algorithm-server answers as Katib's services Suggestion and EarlyStopping, so that Katib's
own controller, or any other program, can search with Diwan's algorithms. It keeps
nothing: an answer follows from the request alone.`,
		Example: `  # Every algorithm, for programs of this machine.
  diwan algorithm-server

  # As the service of one algorithm, for Katib in a cluster.
  diwan algorithm-server --address :6789 --algorithm tpe`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			if known := algorithmNames(); name != "" && !slices.Contains(known, name) {
				return usagef("cannot use --algorithm %s: known are %s", name, strings.Join(known, ", "))
			}
			ctx, release := interruptible(context.Background())
			defer release()
			listener, err := net.Listen("tcp", address)
			if err != nil {
				return fmt.Errorf("cannot listen: %w", err)
			}
			if _, err := fmt.Fprintf(a.streams.Out, "ready at %s\n", listener.Addr()); err != nil {
				return err
			}
			trials, err := ownTrials()
			if err != nil {
				return err
			}
			return (&server.Server{Algorithm: name, Trials: trials}).Serve(ctx, listener)
		},
	}
	command.Flags().StringVar(&address, "address", "127.0.0.1:6788", "address to answer at; anyone who reaches it may ask")
	command.Flags().StringVar(&name, "algorithm", "", "the algorithm that answers, whatever a request names (default the one that it names)")
	return command
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
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, err
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
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
