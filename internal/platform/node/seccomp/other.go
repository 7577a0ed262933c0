// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package seccomp

import "errors"

// errUnsupported is the answer of all that needs Linux.
var errUnsupported = errors.New("seccomp is a feature of Linux, and this machine runs another system")

// ThisMachine fails: there is no seccomp here.
func ThisMachine([]string) (Machine, error) { return Machine{}, errUnsupported }

// Default fails: there is no seccomp here.
func Default() (*Profile, error) { return nil, errUnsupported }
