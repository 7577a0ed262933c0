// SPDX-License-Identifier: Apache-2.0

// Package sidecar is the collector of one trial's metrics in the trial's own
// Pod, for clusters: what the node does on a laptop.
//
// # The model
//
// A webhook of the operator adds the collector's container to the Pod (package
// injection) and gives it its [Config]. [Run] has package collector observe what
// the trial's container produces, until it is asked to stop, and stores it by
// gRPC. It is stateless: after a kill it is restarted, asks the store for its
// offset, and resumes from there.
//
// If package entry runs the trial's program, its output is in a file in the
// directory that both share, and its container ends only when Run reports that
// everything is stored.
package sidecar
