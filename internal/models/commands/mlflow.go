// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/internal/models"
	"diwan.dev/diwan/internal/models/mlflow"
	"diwan.dev/diwan/internal/platform/cli"
	"diwan.dev/diwan/internal/platform/domain"
)

// tokenVariable is where MLflow's clients look for their token.
const tokenVariable = "MLFLOW_TRACKING_TOKEN"

// minToken is the least length of a token that the user chooses.
const minToken = 16

// mlflowRegistry returns the command that serves Models to MLflow's clients.
func mlflowRegistry(streams cli.Streams) *cobra.Command {
	var address string
	command := &cobra.Command{
		Use:   "mlflow",
		Short: "Serve Models and ModelVersions to MLflow's clients",
		Long: `Mlflow serves the REST API of MLflow's model registry from the Models and ModelVersions of a
cluster, with your rights there: mlflow.register_model, aliases, tags, stages and searches
work on them. Set what it prints where the client runs. Nothing but the cluster keeps state.

It listens on loopback only, and answers those who send the token: the one in
$` + tokenVariable + `, if set, else a new one each time.`,
		Example: `  diwan model mlflow

  # The registry of a namespace of another cluster.
  diwan model mlflow --context my-cluster -n team-a`,
		Args:              cli.NoArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, release := cli.Interruptible(command.Context())
			defer release()
			return serveMLflow(ctx, command, streams, address)
		},
	}
	command.Flags().StringVar(&address, "address", "127.0.0.1:5001", "loopback address to listen at; port 0 takes a free one")
	return command
}

func serveMLflow(ctx context.Context, command *cobra.Command, streams cli.Streams, address string) error {
	token := os.Getenv(tokenVariable)
	switch {
	case token == "":
		token = rand.Text()
	case len(token) < minToken:
		return cli.Usagef("cannot use $%s: a token needs %d characters or more", tokenVariable, minToken)
	}
	if err := loopback(address); err != nil {
		return err
	}
	cluster, err := cli.Join(ctx, command)
	if err != nil {
		return err
	}
	defer cluster.Close()
	d := models.Domain()
	scheme, err := domain.NewScheme(d)
	if err != nil {
		return err
	}
	c, err := client.New(cluster.Config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("cannot create a client: %w", err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen: %w: choose another --address", err)
	}
	server := &http.Server{
		Handler:           guarded(listener.Addr(), mlflow.Handler(allowed(token, c), cluster.Namespace)),
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	_, err = fmt.Fprintf(streams.Out, "export MLFLOW_REGISTRY_URI=http://%s\nexport %s=%s\n", listener.Addr(), tokenVariable, token)
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-cluster.Lost:
		case err = <-served:
			return fmt.Errorf("cannot serve: %w", err)
		}
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if server.Shutdown(stopping) != nil {
		server.Close()
	}
	<-served
	return err
}

// loopback refuses an address that others than this machine reach: the token would cross the
// network in the clear.
func loopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return cli.Usagef("cannot use --address %s: %w", address, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return cli.Usagef("cannot use --address %s: it must be on loopback, such as 127.0.0.1:5001, since the token is not encrypted; forward the port by SSH to use it from elsewhere", address)
	}
	return nil
}

// guarded refuses requests for another host: a page whose name was made to lead here.
func guarded(at net.Addr, next http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(at.String())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, asked, err := net.SplitHostPort(r.Host)
		ip := net.ParseIP(host)
		if err != nil || asked != port || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "this server has no such name: use the address that diwan model mlflow printed", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// allowed gives the client to who knows the token.
func allowed(token string, c client.Client) mlflow.Clients {
	return func(r *http.Request) (client.Client, error) {
		given, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !found || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			return nil, mlflow.Unauthenticated("set " + tokenVariable + " to the token that `diwan model mlflow` printed")
		}
		return c, nil
	}
}
