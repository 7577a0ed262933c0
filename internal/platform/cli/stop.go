// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// Interruptible returns a context that ends with [errInterrupted] as its cause when the user
// interrupts the command or the system ends it. A second interruption ends the process at once,
// with exit code 130. release gives the signals back.
func Interruptible(parent context.Context) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, unix.SIGTERM)
	released := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-signals:
				if ctx.Err() != nil {
					os.Exit(exitInterrupted)
				}
				cancel(errInterrupted)
			case <-released:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(released)
		<-ended
		cancel(nil)
	}
}
