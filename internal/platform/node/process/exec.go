// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/stream"
)

// Exec runs a command beside the run.
func (r *run) Exec(ctx context.Context, args []string, s container.Streams) error {
	select {
	case <-r.done:
		return fmt.Errorf("cannot run a command in container %s: it has ended", r.record.Spec.ID)
	default:
	}
	if len(args) == 0 {
		return fmt.Errorf("cannot run a command in container %s: there is no command", r.record.Spec.ID)
	}
	session := &stream.Session{Streams: s}
	attr := &os.ProcAttr{Sys: &syscall.SysProcAttr{Setsid: true}}
	if err := session.Open(attr); err != nil {
		return fmt.Errorf("cannot run a command in container %s: %w", r.record.Spec.ID, err)
	}
	proc, err := r.runtime.startBeside(r.record, r.pid, attr, args)
	session.Started(err == nil)
	if err != nil {
		return fmt.Errorf("cannot run %q in container %s: %w", args[0], r.record.Spec.ID, err)
	}
	status := r.await(ctx, proc)
	session.Finish()
	if err := ctx.Err(); err != nil {
		return err
	}
	if code := exitCode(status); code != 0 {
		return &container.ExitError{Code: int(code)}
	}
	return nil
}

// await waits for the command, and ends it with the context.
func (r *run) await(ctx context.Context, proc *os.Process) *os.ProcessState {
	stop := context.AfterFunc(ctx, func() { unix.Kill(-proc.Pid, unix.SIGKILL) })
	defer stop()
	status, _ := proc.Wait()
	return status
}
