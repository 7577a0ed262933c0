// SPDX-License-Identifier: Apache-2.0

package dbmanager

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

	"diwan.dev/diwan/api/manager/v1beta1"
)

// Port is where a DBManager listens, by Katib's convention.
const Port = 6789

const (
	// grace is how long calls under way may take to end when serving ends.
	grace = time.Second
	// idle is how long a connection may carry nothing.
	idle = 10 * time.Minute
	// maxStreams bounds the calls under way of one connection.
	maxStreams = 100
)

// Serve answers on some listeners until ctx ends, beside grpc.health.v1. It
// closes the listeners.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(s.MaxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(10*time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idle}),
	)
	v1beta1.RegisterDBManagerServer(server, s)
	grpc_health_v1.RegisterHealthServer(server, healthy())
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
				return fmt.Errorf("cannot serve DBManager on %s: %w", l.Addr(), err)
			}
			return nil
		})
	}
	return group.Wait()
}

// healthy answers probes: for the whole server by the empty name, and by the
// name of the service.
func healthy() grpc_health_v1.HealthServer {
	h := health.NewServer()
	h.SetServingStatus(v1beta1.DBManager_ServiceDesc.ServiceName, grpc_health_v1.HealthCheckResponse_SERVING)
	return h
}
