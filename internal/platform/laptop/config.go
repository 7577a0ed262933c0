// SPDX-License-Identifier: Apache-2.0

package laptop

import "time"

// Config says how a local cluster is started.
type Config struct {
	// Home holds all state. One process owns it at a time.
	Home Home
	// Port is the API server's loopback port. 0, the default, keeps the port
	// that the home had before, or takes a free one.
	Port int
	// NodeName is the name of the node object. Default "laptop".
	NodeName string
	// CPUs is how many processors Pods may ask for. 0, the default: those of the
	// machine.
	CPUs int
	// Memory is how many bytes Pods may ask for. 0, the default: those of the
	// machine.
	Memory int64
	// Store is where metrics are kept, as package stores reads it. "", the
	// default, is a file in the home. A home does not remember it.
	Store string
	// Wings returns the domains, given what the laptop lends them. Nil: none.
	Wings func(*Lent) ([]Wing, error)
	// StopGrace bounds how long a stop waits for containers to end after
	// SIGTERM before they are killed. Default 5 s.
	StopGrace time.Duration
	// Progress, if set, is told each step of the start in a few words.
	Progress func(step string)
	// Notice, if set, is told what Pods lack on this machine, and what would help.
	Notice func(text string)
}

// DefaultConfig is the configuration of a laptop.
func DefaultConfig(home Home) Config {
	return Config{Home: home, NodeName: "laptop", StopGrace: 5 * time.Second}
}
