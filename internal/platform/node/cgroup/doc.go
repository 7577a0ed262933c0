// SPDX-License-Identifier: Apache-2.0

// Package cgroup makes the control groups of containers: one for membership, and those
// that hold their limits, in versions 1 and 2 and both at once. Where none can be made it
// says so in words.
package cgroup
