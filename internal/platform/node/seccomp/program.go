// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"encoding/binary"

	"golang.org/x/net/bpf"
)

// Program is what the kernel runs before a syscall. It does not change.
type Program struct {
	instructions []bpf.RawInstruction
	// Flags are the flags of seccomp(SECCOMP_SET_MODE_FILTER) that the profile asks for.
	Flags uint32
}

// instructionSize is that of the kernel's struct sock_filter, in bytes.
const instructionSize = 8

// Len returns the number of instructions, 1 to 4096.
func (p *Program) Len() int { return len(p.instructions) }

// Bytes returns the program as an array of the kernel's struct sock_filter, 8 bytes each.
func (p *Program) Bytes() []byte {
	text := make([]byte, 0, len(p.instructions)*instructionSize)
	for _, i := range p.instructions {
		text = binary.NativeEndian.AppendUint16(text, i.Op)
		text = append(text, i.Jt, i.Jf)
		text = binary.NativeEndian.AppendUint32(text, i.K)
	}
	return text
}
