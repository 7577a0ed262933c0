// SPDX-License-Identifier: Apache-2.0

// Package container is the interface between the node and a container
// runtime. The node decides what should run; a [Runtime] runs it, keeps it
// running when the node is gone, and tells a later node its outcome.
//
// A run of a container is one process tree with an [ID]. A container that
// restarts has several runs, numbered by Attempt.
package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"diwan.dev/diwan/internal/platform/node/capability"
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

// Mount makes a file or directory of the host, or of an image, appear in a container.
type Mount struct {
	// Source is the absolute path on the host, or in the image. It exists.
	Source string `json:"source"`
	// Target is the absolute path in the container.
	Target string `json:"target"`
	// ReadOnly forbids writing through Target.
	ReadOnly bool `json:"readOnly,omitempty"`
	// Optional mounts are left out without a word where mounting is not
	// possible: the node adds them for convenience (/etc/hosts).
	Optional bool `json:"optional,omitempty"`
	// Base is the directory of the volume in which Source lies. No link in it leads out
	// of it, whatever programs that share the volume do meanwhile. "" trusts the path.
	Base string `json:"base,omitempty"`
	// Layers are the unpacked layers of an image on the host, absolute paths, lowest
	// first. Source is then in what they show together, where links end. Such a mount is
	// read-only, and none of its files is executed.
	Layers []string `json:"layers,omitempty"`
	// ImageID names the image of Layers, as Root.ImageID does.
	ImageID string `json:"imageID,omitempty"`
}

// User is who a container runs as.
type User struct {
	UID    int64   `json:"uid"`
	GID    int64   `json:"gid"`
	Groups []int64 `json:"groups,omitempty"`
}

// Limits are a container's resource limits. Zero means no limit.
type Limits struct {
	// Memory in bytes.
	Memory int64 `json:"memory,omitempty"`
	// CPU in thousandths of a core.
	CPU int64 `json:"cpu,omitempty"`
	// CPURequest in thousandths of a core: the weight against others.
	CPURequest int64 `json:"cpuRequest,omitempty"`
	// PIDs is how many processes and threads there may be at a time. Where it cannot be
	// held there is no warning: nobody asked for it.
	PIDs int64 `json:"pids,omitempty"`
}

// Root is the root file system of a container in an image.
type Root struct {
	// ImageID names the image: repository@sha256:digest of its manifest.
	ImageID string `json:"imageID"`
	// Layers are the unpacked layers on the host, absolute paths, lowest first.
	Layers []string `json:"layers"`
	// ReadOnly forbids writing outside of mounts.
	ReadOnly bool `json:"readOnly,omitempty"`
}

// Security is what a container in an image may do.
type Security struct {
	// Capabilities bound those of the program and of all that it starts.
	Capabilities capability.Set `json:"capabilities"`
	// Seccomp is the program of the filter, as an array of the kernel's struct
	// sock_filter, and SeccompFlags are its flags; empty is no filter.
	Seccomp      []byte `json:"seccomp,omitempty"`
	SeccompFlags uint32 `json:"seccompFlags,omitempty"`
	// NoNewPrivileges keeps programs from gaining rights by setuid files.
	NoNewPrivileges bool `json:"noNewPrivileges,omitempty"`
	// Masked paths show nothing, and ReadOnly paths cannot be written. Those that
	// are missing do not matter.
	Masked   []string `json:"masked,omitempty"`
	ReadOnly []string `json:"readOnly,omitempty"`
	// Privileged shows the machine's devices, and /sys for writing.
	Privileged bool `json:"privileged,omitempty"`
}

// Spec specifies what to run.
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
	// Hostname is the host name in the container; "" keeps the host's.
	Hostname string `json:"hostname,omitempty"`
	// Netns is the network namespace's path; "" is the node's own.
	Netns string `json:"netns,omitempty"`
	// Hold is a path that is kept open, as file 5 of the shim, for as long as the
	// run lives; "" is none.
	Hold string `json:"hold,omitempty"`
	// User is nil for the node's own user. A node that is not root gives its own
	// user these ids, where it can.
	User *User `json:"user,omitempty"`
	// Among is a run of a container with a Root, in whose process namespace this one is; it
	// ends with that. nil is a namespace of its own. It applies to containers with a Root.
	Among *ID `json:"among,omitempty"`
	// SharesProcesses puts the run into one process namespace with all runs of its Pod
	// that say so. It applies to containers with a Root, and without Among.
	SharesProcesses bool `json:"sharesProcesses,omitempty"`
	// Root is the root file system; nil is the host's, for a process.
	Root *Root `json:"root,omitempty"`
	// Security applies to containers with a Root.
	Security *Security `json:"security,omitempty"`
	// Sysctls are kernel parameters of the container's namespaces, by name. They
	// apply to containers with a Root.
	Sysctls map[string]string `json:"sysctls,omitempty"`
	// Limits bound the container.
	Limits Limits `json:"limits,omitzero"`
	// Stdin gives the program a standard input that clients can attach to; else it
	// is empty.
	Stdin bool `json:"stdin,omitempty"`
	// StdinOnce ends the input with the first session that was attached to it. A
	// terminal's input does not end.
	StdinOnce bool `json:"stdinOnce,omitempty"`
	// TTY makes standard input, output and error a terminal.
	TTY bool `json:"tty,omitempty"`
	// Log is the file that receives standard output and error.
	Log string `json:"log"`
	// Restarts is the caller's count of restarts of the container.
	Restarts int32 `json:"restarts,omitempty"`
	// Backoff is the caller's step of the back-off between restarts.
	Backoff int `json:"backoff,omitempty"`
}

// Images are the IDs of all images whose files the container has.
func (s *Spec) Images() []string {
	var all []string
	if s.Root != nil {
		all = append(all, s.Root.ImageID)
	}
	for _, m := range s.Mounts {
		if m.ImageID != "" {
			all = append(all, m.ImageID)
		}
	}
	return all
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
	// CPU is the CPU time of all its processes that were waited for.
	CPU time.Duration
	// PeakMemory is the most memory that it used, in bytes, as its cgroup
	// counts it; 0 if it had none.
	PeakMemory int64
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

// ErrNoInput is what Run.Attach returns where the program's input is closed or
// empty.
var ErrNoInput = errors.New("it has no standard input")

// Input is a session with a run's standard input. Close ends it, and a Write
// that waits for the program.
type Input interface {
	io.WriteCloser
	// Resize sets the terminal's size in characters.
	Resize(columns, rows uint16) error
}

// Usage is what a run has used.
type Usage struct {
	// CPU is the CPU time since the start.
	CPU time.Duration
	// Memory is the working set in bytes.
	Memory uint64
}

// Run is one run of a container. Its methods may be called from several
// goroutines.
type Run interface {
	// Spec returns the run's specification.
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
	// Attach connects to the run's standard input. The error is ErrNoInput where
	// it has none.
	Attach(ctx context.Context) (Input, error)
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
	// Mounts reports whether Spec.Mounts appear at their targets. If not, the
	// caller passes the sources to programs.
	Mounts() bool
	// Close waits for the runtime's own goroutines. Runs continue.
	Close() error
}
