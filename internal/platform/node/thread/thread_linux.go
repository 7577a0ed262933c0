// SPDX-License-Identifier: Apache-2.0

// Package thread gives functions threads of the system to themselves.
package thread

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Run runs f on a thread that ends with it, so that f may change what the thread
// alone has: its namespaces, its cgroups. It returns when f does, which may
// be a moment before the thread has ended. f starts no goroutines that need what it
// changed.
func Run(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()              // and never unlock: the thread ends
		if unix.Gettid() == unix.Getpid() { // but for the process's first
			result <- Run(f)
			runtime.UnlockOSThread()
			return
		}
		result <- f()
	}()
	return <-result
}
