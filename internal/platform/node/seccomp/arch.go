// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// architecture is one for which a program of this machine can make syscalls.
type architecture struct {
	name   string // Go's
	spec   specs.Arch
	audit  uint32 // AUDIT_ARCH_…, what the kernel passes to the program
	narrow bool   // arguments have 32 bits
	column int    // of the table of syscalls
	compat *architecture
}

var (
	i386  = &architecture{name: "386", spec: specs.ArchX86, audit: 0x40000003, narrow: true, column: 1}
	arm   = &architecture{name: "arm", spec: specs.ArchARM, audit: 0x40000028, narrow: true, column: 3}
	amd64 = &architecture{name: "amd64", spec: specs.ArchX86_64, audit: 0xc000003e, column: 0, compat: i386}
	arm64 = &architecture{name: "arm64", spec: specs.ArchAARCH64, audit: 0xc00000b7, column: 2, compat: arm}
)

// native returns a machine's own architecture by Go's name.
func native(name string) (*architecture, error) {
	switch name {
	case amd64.name:
		return amd64, nil
	case arm64.name:
		return arm64, nil
	}
	return nil, fmt.Errorf("seccomp profiles are for amd64 and arm64, and this machine is %s", name)
}

// known are the names of architectures that a profile may list.
var known = []specs.Arch{
	specs.ArchX86, specs.ArchX86_64, specs.ArchX32, specs.ArchARM, specs.ArchAARCH64, specs.ArchMIPS, specs.ArchMIPS64,
	specs.ArchMIPS64N32, specs.ArchMIPSEL, specs.ArchMIPSEL64, specs.ArchMIPSEL64N32, specs.ArchPPC, specs.ArchPPC64,
	specs.ArchPPC64LE, specs.ArchS390, specs.ArchS390X, specs.ArchPARISC, specs.ArchPARISC64, specs.ArchRISCV64,
	specs.ArchLOONGARCH64, specs.ArchM68K, specs.ArchSH, specs.ArchSHEB,
}

// syscallNumbers is a line of the table.
type syscallNumbers struct {
	name    string
	numbers [4]int32 // by architecture.column
}

// number returns the number of a syscall, and whether the architecture has it.
func (a *architecture) number(name string) (uint32, bool) {
	i, ok := slices.BinarySearchFunc(syscalls[:], name, func(s syscallNumbers, name string) int { return cmp.Compare(s.name, name) })
	if !ok || syscalls[i].numbers[a.column] < 0 {
		return 0, false
	}
	return uint32(syscalls[i].numbers[a.column]), true
}

const (
	// x32Bit marks a syscall number of x32 on amd64.
	x32Bit = 0x40000000
	// armPrivate is where the numbers of ARM's private syscalls start.
	armPrivate = 0xf0000
)
