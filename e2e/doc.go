// SPDX-License-Identifier: Apache-2.0

// Package e2e holds the tests that meet the binary as users do: they build
// it, run it on a home of their own, and talk to it with kubectl, the command
// line and the Kubernetes API. It has no code of its own.
package e2e
