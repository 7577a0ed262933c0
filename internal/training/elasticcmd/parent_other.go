// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package elasticcmd

import "syscall"

// dieWithParent does nothing: a worker notices by its connection that the agent is gone.
func dieWithParent() *syscall.SysProcAttr { return nil }

// lockThread does nothing.
func lockThread() {}
