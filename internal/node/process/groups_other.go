// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import "diwan.dev/diwan/internal/node/container"

// groups: this system has no control groups.
type groups struct{}

func openGroups(string) *groups { return nil }

func (g *groups) create(_ container.ID, l container.Limits) (dirs, warnings []string) {
	return nil, unlimited(l, "this system has no control groups")
}

func (g *groups) unified([]string) bool   { return false }
func (g *groups) kill([]string)           {}
func (g *groups) remove([]string) bool    { return true }
func (g *groups) oomKilled([]string) bool { return false }
func (g *groups) close()                  {}
