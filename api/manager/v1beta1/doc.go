// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 is the gRPC package api.v1.beta1: the interface by which
// programs report metrics, suggest parameters and stop trials early, as Katib
// defines it.
//
// api.proto says what there is. The Go files beside it are generated from it by
// `make generate` and committed, so that building needs no compiler of
// Protocol Buffers.
package v1beta1
