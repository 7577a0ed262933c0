// SPDX-License-Identifier: Apache-2.0

// Package podtest tests collectors in real Pods: packages injection, sidecar and
// entry together, on a cluster whose node collects nothing.
package podtest
