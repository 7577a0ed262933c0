// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package server

import "time"

// machine is what this machine has used; zero values are unknown.
type machine struct {
	cpu        time.Duration
	memoryUsed uint64
	booted     time.Time
}

// readMachine knows nothing on this system.
func readMachine() machine { return machine{} }
