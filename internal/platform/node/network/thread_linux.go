// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/thread"
)

// threadNetns names the network namespace of the calling thread.
const threadNetns = "/proc/thread-self/ns/net"

// inNamespace runs f on a thread that is in the network namespace ns, and then
// brings the thread back to home. f starts no goroutines that need the namespace.
func inNamespace(home, ns *os.File, f func() error) error {
	return onThread(home, func() error {
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("cannot enter network namespace: %w", err)
		}
		return f()
	})
}

// onThread runs f on its own thread and returns the thread to the namespace
// home. A thread that cannot return ends with its goroutine; if home is nil
// none can.
func onThread(home *os.File, f func() error) error {
	if home == nil {
		return thread.Run(f)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := f()
		back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET)
		if back == nil {
			runtime.UnlockOSThread()
		}
		done <- errors.Join(err, back)
	}()
	return <-done
}
