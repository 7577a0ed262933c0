// SPDX-License-Identifier: Apache-2.0

package elasticcmd

import (
	"runtime"
	"syscall"
)

// dieWithParent terminates the worker when its agent is killed: it cannot continue
// without one.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// lockThread keeps the thread that starts the worker, because the worker dies with it.
func lockThread() { runtime.LockOSThread() }
