// SPDX-License-Identifier: Apache-2.0

// Package v1 is the gRPC package diwan.observation.v1: an observation store as a
// service, which collectors in the Pods of trials report to.
//
// store.proto says what there is. The Go files beside it are generated from it
// by `make generate` and committed.
package v1
