// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import (
	"os"

	"diwan.dev/diwan/internal/platform/node/runstate"
)

// canUnshare: this system has no namespaces.
func canUnshare() bool { return false }

// launch starts the shim for args; mounts and the user are left out.
func (r *run) launch(attr *os.ProcAttr, args []string) (*os.Process, error) {
	if err := enter(&r.record.Spec); err != nil {
		return nil, err
	}
	attr.Dir = r.record.Spec.Dir
	return os.StartProcess("/bin/sh", shim(args), attr)
}

// startBeside starts a command with the environment of a run.
func (r *Runtime) startBeside(rec runstate.Record, pid int, attr *os.ProcAttr, args []string) (*os.Process, error) {
	env, odd := split(rec.Spec.Env)
	if len(odd) > 0 {
		args = append(append([]string{"env"}, odd...), args...)
	}
	attr.Env = append(env, marker(rec.Spec.ID))
	attr.Dir = rec.Spec.Dir
	program, err := Find(args[0], attr.Dir, rec.Spec.Env)
	if err != nil {
		return nil, err
	}
	return os.StartProcess(program, args, attr)
}
