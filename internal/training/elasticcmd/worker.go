// SPDX-License-Identifier: Apache-2.0

package elasticcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"diwan.dev/diwan/elastic/agent"
)

// runWith serves one worker, whose parent it is. Signals go to the worker; the agent ends after it.
func runWith(config agent.Config, args []string, streams Streams) (err error) {
	dir, err := newSocketDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	config.Socket = "unix:" + filepath.Join(dir, socketName)
	a, err := agent.Listen(config)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- a.Run(ctx) }()
	defer func() {
		stop()
		err = errors.Join(err, <-served)
	}()
	return runWorker(args, a.Socket(), streams)
}

// runWorker runs a program to its end, with the signals that reach this one.
func runWorker(args []string, socket string, streams Streams) error {
	worker := exec.Command(args[0], args[1:]...)
	worker.Env = append(os.Environ(), Variable+"="+socket)
	worker.Stdin, worker.Stdout, worker.Stderr = streams.In, streams.Out, streams.Err
	worker.SysProcAttr = dieWithParent()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	started, ended := make(chan error), make(chan error, 1)
	go func() { // the parent, to the kernel, is the thread that starts the worker
		lockThread()
		err := worker.Start()
		started <- err
		if err == nil {
			ended <- worker.Wait()
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("cannot start the worker: %w", err)
	}
	for {
		select {
		case s := <-signals:
			worker.Process.Signal(s)
		case err := <-ended:
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return &ExitError{exitCode(exit)}
			}
			return err
		}
	}
}

// exitCode returns a program's exit code, or 128 plus the signal number if a signal killed it, as in
// shells.
func exitCode(exit *exec.ExitError) int {
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}
