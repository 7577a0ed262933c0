// SPDX-License-Identifier: Apache-2.0

// Package sidecar is the collector of one trial's metrics in the trial's own
// Pod, for clusters: what the node does on a laptop.
//
// # The model
//
// A webhook of the operator adds the collector's container to the Pod (package
// injection) and gives it its [Config]. [Run] has package collector observe what
// the trial's container yields, until it is asked to end, and stores it by gRPC.
// It keeps nothing itself: one that is killed is started again, asks the store
// how far it had got, and reads on from there.
//
// Where the trial's program is run by package entry, its output is in a file of
// the directory that both share, and its container ends only when Run says that
// all is stored.
package sidecar
