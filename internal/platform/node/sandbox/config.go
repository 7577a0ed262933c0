// SPDX-License-Identifier: Apache-2.0

package sandbox

import "time"

// Config configures a Runtime.
type Config struct {
	// Dir holds the state of runs, and what they write: Dir/<pod>/run.<container>.<attempt>.
	// It is absolute. One process at a time uses it.
	Dir string
	// Keeper is the binary that calls keeper.Main under the name keeper.Name, for
	// runs with a standard input or a terminal. Empty: those cannot start.
	Keeper string
	// AdoptPoll is how often the end of an adopted run is looked for. Runs that
	// this process started are waited for and cost no polling. Default 50 ms.
	AdoptPoll time.Duration
	// NoGroups leaves cgroups alone: there are then no limits.
	NoGroups bool
	// NoOverlay copies layers even where they could be mounted.
	NoOverlay bool
}

// DefaultConfig is the configuration for the state directory dir.
func DefaultConfig(dir string) Config {
	return Config{Dir: dir, AdoptPoll: 50 * time.Millisecond}
}
