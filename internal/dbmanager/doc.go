// SPDX-License-Identifier: Apache-2.0

// Package dbmanager serves Katib's gRPC service DBManager over an observation
// store: programs report the metrics of their trial, and read or delete those
// of others, as far as they may.
//
// # The model
//
// A request names a trial by its name alone. [Access] finds out who asks, from
// that the namespace, and whether they may; package
// [diwan.dev/diwan/internal/dbmanager/access] has the one for Kubernetes.
//
// The points of all reports to a trial form one source of its observation. Its
// offset counts points, so that reports that come at the same time, also to
// several servers, each find their place. A report is answered once its points
// are durable: so when a trial's Pod has ended, its observation is complete.
//
// # Differences from Katib
//
// There, anyone who reaches the port may write and delete, whatever the trial.
// Here a report about a trial that is not there or has ended is refused, and so
// are points that no store could keep; points without a time stamp count for
// when they came, and are not dropped silently.
package dbmanager
