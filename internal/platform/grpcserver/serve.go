// SPDX-License-Identifier: Apache-2.0

// Package grpcserver runs the gRPC servers of this program, all with the same
// limits and with the gRPC health service for probes.
package grpcserver

import (
	"context"
	"fmt"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
)

const (
	// grace is how long calls under way may take to end when serving ends.
	grace = time.Second
	// idle is how long a connection may carry nothing.
	idle = 10 * time.Minute
	// maxStreams bounds the calls under way of one connection.
	maxStreams = 100
)

// Serve answers on some listeners until ctx ends, beside grpc.health.v1. It
// closes the listeners. register adds the services; maxMessage bounds a request
// in bytes; probes ask for the server by the empty name and the given ones.
func Serve(ctx context.Context, register func(grpc.ServiceRegistrar), maxMessage int, probes []string, listeners ...net.Listener) error {
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(10*time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idle}),
	)
	register(server)
	healthy := health.NewServer()
	for _, name := range probes {
		healthy.SetServingStatus(name, grpc_health_v1.HealthCheckResponse_SERVING)
	}
	grpc_health_v1.RegisterHealthServer(server, healthy)
	stop := context.AfterFunc(ctx, func() {
		forced := time.AfterFunc(grace, server.Stop)
		defer forced.Stop()
		server.GracefulStop()
	})
	defer stop()
	var group errgroup.Group
	for _, l := range listeners {
		group.Go(func() error {
			if err := server.Serve(l); err != nil && ctx.Err() == nil {
				server.Stop() // the others end too
				return fmt.Errorf("cannot serve gRPC on %s: %w", l.Addr(), err)
			}
			return nil
		})
	}
	return group.Wait()
}
