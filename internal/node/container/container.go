// SPDX-License-Identifier: Apache-2.0

// Package container names what the node and a container runtime say to each
// other. The node decides what should run; a [Runtime] runs it, keeps running
// it when the node is gone, and tells a later node what became of it.
//
// A run of a container is one process tree with an [ID]. A container that
// restarts has several runs, numbered by Attempt.
package container

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// ID names one run of a container.
type ID struct {
	// Pod is the Pod's UID.
	Pod string `json:"pod"`
	// Name is the container's name in the Pod.
	Name string `json:"name"`
	// Attempt numbers the runs from 0.
	Attempt int `json:"attempt"`
}

// String is pod/name/attempt.
func (id ID) String() string { return fmt.Sprintf("%s/%s/%d", id.Pod, id.Name, id.Attempt) }

// Mount makes a file or directory of the host appear in a container.
type Mount struct {
	// Source is the absolute path on the host. It exists.
	Source string `json:"source"`
	// Target is the absolute path in the container.
	Target string `json:"target"`
	// ReadOnly forbids writing through Target.
	ReadOnly bool `json:"readOnly,omitempty"`
	// Optional mounts are left out without a word where mounting is not
	// possible: the node adds them for convenience (/etc/hosts).
	Optional bool `json:"optional,omitempty"`
}

// User is who a container runs as.
type User struct {
	UID    int64   `json:"uid"`
	GID    int64   `json:"gid"`
	Groups []int64 `json:"groups,omitempty"`
}

// Limits bound what a container uses. Zero means no bound.
type Limits struct {
	// Memory in bytes.
	Memory int64 `json:"memory,omitempty"`
	// CPU in thousandths of a core.
	CPU int64 `json:"cpu,omitempty"`
	// CPURequest in thousandths of a core: the weight against others.
	CPURequest int64 `json:"cpuRequest,omitempty"`
}

// Spec says what to run.
type Spec struct {
	ID ID `json:"id"`
	// Args is the program and its arguments. A program without a slash is looked
	// up in the PATH of Env.
	Args []string `json:"args"`
	// Env is the whole environment, NAME=value.
	Env []string `json:"env"`
	// Dir is the absolute working directory in the container. It is created
	// where it is missing.
	Dir string `json:"dir"`
	// Mounts are in the order in which they are made.
	Mounts []Mount `json:"mounts,omitempty"`
	// Hostname is what the container sees as the host's name; "" keeps the host's.
	Hostname string `json:"hostname,omitempty"`
	// Netns is the network namespace's path; "" is the node's own.
	Netns string `json:"netns,omitempty"`
	// Hold is a path that is kept open, as file 5 of the shim, for as long as the
	// run lives; "" is none.
	Hold string `json:"hold,omitempty"`
	// User is nil for the node's own user. A node that is not root gives its own
	// user these ids, where it can.
	User *User `json:"user,omitempty"`
	// Limits bound the container.
	Limits Limits `json:"limits,omitzero"`
	// Log is the file that receives standard output and error.
	Log string `json:"log"`
	// Restarts is the caller's count of restarts of the container.
	Restarts int32 `json:"restarts,omitempty"`
	// Backoff is the caller's step of the back-off between restarts.
	Backoff int `json:"backoff,omitempty"`
}

// Outcome says how a run ended.
type Outcome string

const (
	// Exited: the program ended or was killed; Exit.Code says how.
	Exited Outcome = "Exited"
	// Interrupted: the node's own end stopped it.
	Interrupted Outcome = "Interrupted"
	// Lost: it is gone and nobody knows how it ended. The machine was restarted,
	// or the node was killed while it started the run.
	Lost Outcome = "Lost"
)

// Exit is the end of a run.
type Exit struct {
	Outcome Outcome
	// Code is the exit code, 128 plus the signal's number for a killed program.
	Code int32
	// OOMKilled says that the kernel killed a process of the run because the
	// memory limit was reached.
	OOMKilled bool
	// At is when it ended.
	At time.Time
}

// StartError says that a run could not be started for a reason that lies in
// the container's description: trying again does not help.
type StartError struct {
	// Reason is ContainerCannotRun, StartError or CreateContainerConfigError.
	Reason string
	// Code is the exit code to report: 126, 127 or 128.
	Code int32
	Err  error
}

// Error is the cause's message.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// Streams are the ends of an exec session; each may be nil. With TTY set,
// Stderr is unused and Resize yields sizes as columns and rows.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	TTY            bool
	Resize         <-chan [2]uint16
}

// ExitError is the end of an exec session with a code other than 0.
type ExitError struct{ Code int }

// Error names the code.
func (e *ExitError) Error() string {
	return fmt.Sprintf("command terminated with exit code %d", e.Code)
}

// ExitStatus returns the code.
func (e *ExitError) ExitStatus() int { return e.Code }

// Usage is what a run has used.
type Usage struct {
	// CPU is the processor time since the start.
	CPU time.Duration
	// Memory is the working set in bytes.
	Memory uint64
}

// Run is one run of a container. Its methods may be called from several
// goroutines.
type Run interface {
	// Spec returns what was asked for.
	Spec() Spec
	// Started is when it started.
	Started() time.Time
	// Done is closed when the run has ended and none of its processes is left.
	Done() <-chan struct{}
	// Exit returns how it ended. Only after Done.
	Exit() Exit
	// Signal sends a signal to the run's processes.
	Signal(os.Signal) error
	// Kill ends all of the run's processes at once.
	Kill() error
	// Interrupt marks the run as interrupted, so that Exit says so now and after
	// a restart of the node. It does not end it.
	Interrupt() error
	// Exec runs a command beside the run, in the same surroundings. A code other
	// than 0 is an *ExitError.
	Exec(ctx context.Context, args []string, s Streams) error
	// Usage measures the run.
	Usage() (Usage, error)
	// Warnings are what could not be given to the run, in words for its user.
	Warnings() []string
	// Remove forgets a run that is done.
	Remove() error
}

// Runtime runs containers.
type Runtime interface {
	// Start starts a run. output is the log file, open for appending. A
	// *StartError means that the container's description is at fault.
	Start(ctx context.Context, spec Spec, output *os.File) (Run, error)
	// Recover finds all runs that an earlier runtime on the same state left,
	// running or not. It is called once, before the first Start.
	Recover(ctx context.Context) ([]Run, error)
	// Mounts tells whether Spec.Mounts appear at their targets. Where they do
	// not, the caller tells programs the sources.
	Mounts() bool
	// Close waits for the runtime's own goroutines. Runs go on.
	Close() error
}
