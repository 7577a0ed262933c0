// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"math/bits"
	"strings"
)

// Set is a set of capabilities: bit n is the capability that linux/capability.h has as n.
type Set uint64

// prefix starts the names of capabilities in the kernel's headers. Manifests have names
// without it.
const prefix = "CAP_"

// names are those of all capabilities, by bit.
var names = [...]string{
	"CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "LINUX_IMMUTABLE",
	"NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT",
	"SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE", "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE",
	"AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP", "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ",
	"PERFMON", "BPF", "CHECKPOINT_RESTORE",
}

// All are the capabilities that have a name here.
const All Set = 1<<len(names) - 1

// Default returns what a container has that asks for nothing, as with containerd.
func Default() Set {
	var s Set
	for _, name := range []string{
		"CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP",
		"NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE",
	} {
		one, _ := byName(name)
		s |= one
	}
	return s
}

// byName returns a capability by its name, with or without the prefix, in any case.
func byName(name string) (Set, bool) {
	name = strings.TrimPrefix(strings.ToUpper(name), prefix)
	for bit, n := range names {
		if n == name {
			return 1 << bit, true
		}
	}
	return 0, false
}

// Has reports whether all capabilities of other are in s.
func (s Set) Has(other Set) bool { return s&other == other }

// Intersect returns the capabilities that are in both sets.
func (s Set) Intersect(other Set) Set { return s & other }

// Without returns the capabilities of s that are not in other.
func (s Set) Without(other Set) Set { return s &^ other }

// Names returns the names with CAP_, in the order of bits. A bit without a name here is
// of a newer kernel, and skipped.
func (s Set) Names() []string {
	var list []string
	for bit, name := range names {
		if s&(1<<bit) != 0 {
			list = append(list, prefix+name)
		}
	}
	return list
}

// String returns the names, for messages.
func (s Set) String() string {
	if s == 0 {
		return "none"
	}
	return strings.Join(s.Names(), " ")
}

// Words returns the set as capset takes it, with the lower bits first.
func (s Set) Words() [2]uint32 { return [2]uint32{uint32(s), uint32(s >> 32)} }

// Bits returns the numbers of the capabilities, which prctl takes one by one.
func (s Set) Bits() []int {
	list := make([]int, 0, bits.OnesCount64(uint64(s)))
	for rest := uint64(s); rest != 0; rest &= rest - 1 {
		list = append(list, bits.TrailingZeros64(rest))
	}
	return list
}
