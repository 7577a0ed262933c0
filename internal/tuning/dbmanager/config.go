// SPDX-License-Identifier: Apache-2.0

package dbmanager

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"diwan.dev/diwan/observation"
)

// Verb is the action of a request on a trial's observation.
type Verb string

// The verbs, which are Kubernetes verbs on the trial.
const (
	Get    Verb = "get"
	Update Verb = "update"
	Delete Verb = "delete"
)

// NamespaceKey is the key of the metadata that names the namespace of the trial
// that a caller means.
const NamespaceKey = "diwan-namespace"

// Audience is the audience of the service account tokens that identify the
// Pods of trials.
const Audience = "diwan-metrics"

// Access authorizes callers.
type Access interface {
	// Trial returns the trial of a name that the caller of ctx means, if they
	// may do verb to it. The error has a gRPC status.
	Trial(ctx context.Context, name string, verb Verb) (observation.Trial, error)
}

// Config configures a Server.
type Config struct {
	// Store keeps the points. Required; the caller closes it.
	Store observation.Store
	// Access authorizes callers. Required.
	Access Access
	// Now is the time of points without one. Default: time.Now.
	Now func() time.Time
	// MaxMessage bounds a request, in bytes. Default 4 MiB: gRPC's own bound,
	// some 50,000 points.
	MaxMessage int
	// MaxPoints bounds the points that one trial may report. Default 100,000,
	// which is more than a chart can show and some 10 MB on disk.
	MaxPoints int
	// Warn, if set, reports a collector's warning to the users of a trial, in at
	// most 1,024 bytes. After an error the collector retries.
	Warn func(ctx context.Context, trial observation.Trial, message string) error
	// Beside, if set, registers more services on the same server.
	Beside func(grpc.ServiceRegistrar)
	// MaxName and MaxValue limit the strings of a point, in bytes. Default
	// 255 and 65,535, as in Katib's database.
	MaxName, MaxValue int
}

// DefaultConfig returns the bounds for normal use.
func DefaultConfig(store observation.Store, access Access) Config {
	return Config{
		Store: store, Access: access, Now: time.Now,
		MaxMessage: 4 << 20, MaxPoints: 100_000, MaxName: 255, MaxValue: 65_535,
	}
}
