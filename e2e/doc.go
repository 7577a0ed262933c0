// SPDX-License-Identifier: Apache-2.0

// Package e2e has the tests that use the binary as users do: they build it,
// run it on their own home, and access it with kubectl, the command line and
// the Kubernetes API. It has no other code.
package e2e
