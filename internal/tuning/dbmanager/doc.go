// SPDX-License-Identifier: Apache-2.0

// Package dbmanager serves Katib's gRPC service DBManager from an observation
// store: programs report the metrics of their trial, and read or delete those of
// others, as authorized.
//
// # The model
//
// A request identifies a trial by its name only. [Access] determines the caller,
// from that the namespace, and whether they are authorized; package
// [diwan.dev/diwan/internal/tuning/dbmanager/access] implements it for
// Kubernetes.
//
// The points of all reports to a trial form one source of its observation. Its
// offset counts points, so that concurrent reports, even to several servers, are
// serialized. A report is acknowledged once its points are durable: so when a
// trial's Pod has ended, its observation is complete.
//
// # Differences from Katib
//
// In Katib, anyone who can reach the port may write and delete, whatever the
// trial. Here a report for a nonexistent or ended trial is rejected, and so are
// points that no store could keep; points without a timestamp get their arrival
// time, and are not dropped silently.
package dbmanager
