// SPDX-License-Identifier: Apache-2.0

// Package v1 is the gRPC package diwan.asktell.v1: the interface by which
// programs that Kubernetes does not run take trials of an experiment, and tell
// how they go.
//
// asktell.proto says what there is. The Go files beside it are generated from it
// by `make generate` and committed.
package v1
