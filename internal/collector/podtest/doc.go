// SPDX-License-Identifier: Apache-2.0

// Package podtest is the tests of collectors in real Pods: those of packages
// injection, sidecar and entry together, on a cluster whose node collects nothing.
package podtest
