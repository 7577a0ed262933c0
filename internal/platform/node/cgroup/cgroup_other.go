// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cgroup

import (
	"time"

	"diwan.dev/diwan/internal/platform/node/container"
)

// Groups makes cgroups. This system has none.
type Groups struct{}

// DefaultPIDs is 0: this system bounds nothing.
func DefaultPIDs() int64 { return 0 }

// Open returns nil, which makes none.
func Open(string) *Groups { return nil }

// Create warns that limits are not held.
func (g *Groups) Create(_ container.ID, l container.Limits) (dirs, warnings []string) {
	return nil, unlimited(l, "this system has no cgroups")
}

// Unified is false on this system.
func (g *Groups) Unified([]string) bool { return false }

// Kill does nothing on this system.
func (g *Groups) Kill([]string) {}

// Remove has nothing to remove on this system.
func (g *Groups) Remove([]string) bool { return true }

// OOMKilled is false on this system.
func (g *Groups) OOMKilled([]string) bool { return false }

// Tidy does nothing on this system.
func (g *Groups) Tidy([]string) {}

// Close does nothing on this system.
func (g *Groups) Close() {}

// Used is not known on this system.
func (g *Groups) Used([]string) (cpu time.Duration, peak int64) { return 0, 0 }
