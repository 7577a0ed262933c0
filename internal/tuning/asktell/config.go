// SPDX-License-Identifier: Apache-2.0

package asktell

import (
	"context"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/internal/tuning/earlystopping"
	"diwan.dev/diwan/observation"
)

// Access authorizes callers.
type Access interface {
	// Namespace returns the namespace that the caller of ctx means, asked where
	// they named one, if they may do verb to a resource of the group
	// kubeflow.org there. The error has a gRPC status.
	Namespace(ctx context.Context, asked, verb, resource string) (string, error)
}

// Config configures a Server. Everything except the limits is required.
type Config struct {
	// Cache holds experiments and trials, with the indexes of [Index].
	Cache cache.Cache
	// API is the API server itself.
	API client.Client
	// Store stores what trials report.
	Store observation.Store
	// Stopping has the learning curves for early stopping.
	Stopping *earlystopping.History
	// Access authorizes callers.
	Access Access
	// Leads reports whether this process runs the controllers, so that Stopping
	// is up to date. Elsewhere a program hears later that its trial is stopped.
	Leads func() bool
	// Clock is the time. Default: the system's.
	Clock clock.PassiveClock
	// MaxReports bounds the reports with metrics of one lease. Default 100,000.
	MaxReports int64
	// MaxMetrics bounds the metrics of one report. Default 1,000.
	MaxMetrics int
}

// DefaultConfig has the bounds for normal use.
func DefaultConfig() Config {
	return Config{Clock: clock.RealClock{}, MaxReports: 100_000, MaxMetrics: 1000}
}

// Bounds of texts in requests, in bytes.
const (
	maxID, maxWorker, maxMessage, maxMetricName = 200, 200, 1000, 255
)
