// SPDX-License-Identifier: Apache-2.0

package early

// Name is the name under which the program is a monitor.
const Name = "diwan-init"

// The files of a monitor. Its standard input is the program's, its standard output the
// log, or the program's own output where Job.Direct is set.
const (
	JobFile    = iota + 3 // the Job
	StatusFile            // receives a Result
	HoldFile              // kept open, where network.HoldFile wants it
	RunFile               // package runstate; none beside a program
	KeptFile              // package keeper: closed when the program has ended
	DoneFile              // then read to its end
	ErrorFile             // the program's standard error where Job.Direct is set
	GroupFile             // the unified cgroup of the program
	SelfFile              // this program, which is executed by this number
	Files
)

// Job is what a monitor does.
type Job struct {
	// Join is PID 1 of the container beside whose program Args run; 0 is a new container.
	Join int
	// JoinBegan is when it started (Began), so that no other process is taken for it.
	JoinBegan uint64
	// Among is PID 1 of a container whose process namespace a new container joins, and
	// AmongBegan when it started; 0 is a namespace of its own. With Userns, AmongUser joins
	// its user namespace, too.
	Among      int
	AmongBegan uint64
	AmongUser  bool
	// Idle has no program: the container's first process is there for a process namespace,
	// holds nothing else, and ends when no other has been in it for ten seconds.
	Idle bool
	// Args are the program and its arguments, and Env its whole environment.
	Args []string
	Env  []string
	// Dir is the absolute working directory. A new container makes it.
	Dir string
	// UID, GID and Groups are the program's.
	UID    uint32
	GID    uint32
	Groups []uint32
	// Userns puts the program into a user namespace of its own, in which this process's
	// user has the ids UID and GID.
	Userns bool

	// Capabilities are the program's bounding set. A program of root has them.
	Capabilities    uint64
	NoNewPrivileges bool
	// Seccomp is an array of struct sock_filter; empty is no filter.
	Seccomp      []byte
	SeccompFlags uintptr

	// Direct passes the monitor's own output to the program, and TTY its input, which is
	// then a terminal.
	Direct bool
	TTY    bool

	// InGroup says that GroupFile is there, and Tasks are the files by which a thread
	// joins further cgroups.
	InGroup bool
	Tasks   []string

	// The rest is for new containers.

	// Layers are the directories of the root file system, the lowest first. Scratch is an
	// empty directory for what the container writes. Without layers, Scratch/root is the
	// root file system.
	Layers  []string
	Scratch string
	// ReadOnly forbids writing to the root file system.
	ReadOnly bool
	// Privileged gives the container all devices, and lets it write to /sys.
	Privileged bool
	// Masked paths show nothing, and Fixed ones are read-only.
	Masked   []string
	Fixed    []string
	Mounts   []Mount
	Hostname string
	// Netns is the path of the network namespace; "" is this process's.
	Netns string
	// Sysctls are names, each with its value after it.
	Sysctls []string
	// Kept says that KeptFile and DoneFile are there.
	Kept bool
}

// Mount is a volume. See container.Mount.
type Mount struct {
	Source   string
	Target   string
	ReadOnly bool
	Optional bool
	Base     string
	Layers   []string
}

// Result says how a start went.
type Result struct {
	// PID is the program's.
	PID int
	// Mounts names a new container's mount namespace, as the links in /proc/PID/ns do.
	Mounts string
	// Error is why nothing started, "" where the program runs. Code is 0, or the exit code
	// to report if the container's description is at fault.
	Error string
	Code  int32
}
