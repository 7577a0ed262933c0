// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// Connect returns a connection to the DBManager. It is made when it is used, and
// again whenever it was lost.
func (c Config) Connect() (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(c.Store,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithPerRPCCredentials(token(c.Token)),
		grpc.WithNoProxy(),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 5 * time.Minute}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 5 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("cannot use the DBManager at %s: %w", c.Store, err)
	}
	return conn, nil
}

// token is the file with the service account token of this Pod, which kubelet
// renews.
type token string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (t token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	text, err := os.ReadFile(string(t))
	if err != nil {
		return nil, fmt.Errorf("cannot read the token of this Pod: %w", err)
	}
	return map[string]string{"authorization": "Bearer " + strings.TrimSpace(string(text))}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials. The token
// is good for nothing but the metrics of this Pod's trial.
func (token) RequireTransportSecurity() bool { return false }

// dialPod connects to programs of this Pod, which listen on all addresses, on
// loopback only, or on the Pod's.
func dialPod(ip string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		var dialer net.Dialer
		host, port, err := net.SplitHostPort(address)
		if err != nil || host != ip {
			return dialer.DialContext(ctx, network, address)
		}
		if conn, err := dialer.DialContext(ctx, network, net.JoinHostPort("localhost", port)); err == nil {
			return conn, nil
		}
		return dialer.DialContext(ctx, network, address)
	}
}
