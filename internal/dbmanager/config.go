// SPDX-License-Identifier: Apache-2.0

package dbmanager

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"diwan.dev/diwan/observation"
)

// Verb is what a request does to a trial's observation.
type Verb string

// The verbs, which are those of Kubernetes on the trial.
const (
	Get    Verb = "get"
	Update Verb = "update"
	Delete Verb = "delete"
)

// NamespaceKey is the key of the metadata that names the namespace of the trial
// that a caller means.
const NamespaceKey = "diwan-namespace"

// Audience is that of the service account tokens by which the Pods of trials
// are known.
const Audience = "diwan-metrics"

// Access decides who may do what.
type Access interface {
	// Trial returns the trial of a name that the caller of ctx means, if they
	// may do verb to it. The error has a gRPC status.
	Trial(ctx context.Context, name string, verb Verb) (observation.Trial, error)
}

// Config says with what a Server works.
type Config struct {
	// Store keeps the points. Required; the caller closes it.
	Store observation.Store
	// Access decides who may do what. Required.
	Access Access
	// Now is the time of points that bear none. Default: time.Now.
	Now func() time.Time
	// MaxMessage bounds a request, in bytes. Default 4 MiB: gRPC's own bound,
	// some 50,000 points.
	MaxMessage int
	// MaxPoints bounds the points that one trial may report. Default 100,000,
	// which is more than a chart can show and some 10 MB on disk.
	MaxPoints int
	// Warn, if set, tells the users of a trial what its collector says is wrong,
	// in at most 1,024 bytes. After an error the collector tries again.
	Warn func(ctx context.Context, trial observation.Trial, message string) error
	// Beside, if set, registers more services on the same server.
	Beside func(grpc.ServiceRegistrar)
	// MaxName and MaxValue bound the texts of a point, in bytes. Default 255
	// and 65,535: what Katib's database keeps.
	MaxName, MaxValue int
}

// DefaultConfig returns the bounds for normal use.
func DefaultConfig(store observation.Store, access Access) Config {
	return Config{
		Store: store, Access: access, Now: time.Now,
		MaxMessage: 4 << 20, MaxPoints: 100_000, MaxName: 255, MaxValue: 65_535,
	}
}
