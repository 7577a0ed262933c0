// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/net/bpf"
)

// data is what the kernel tells a program of a syscall.
type data struct {
	audit  uint32
	number uint32
	args   [arguments]uint64
}

// virtual runs programs in the virtual machine of x/net/bpf.
type virtual struct{ vm *bpf.VM }

func newVirtual(t testing.TB, p *Program) virtual {
	t.Helper()
	code, ok := bpf.Disassemble(p.instructions)
	if !ok {
		t.Fatal("the program cannot be disassembled")
	}
	vm, err := bpf.NewVM(code)
	if err != nil {
		t.Fatal(err)
	}
	return virtual{vm}
}

func (v virtual) run(t testing.TB, d data) answer {
	t.Helper()
	// The machine reads words in the order of the network, where the kernel's are little-endian.
	packet := make([]byte, argsOffset+8*arguments)
	binary.BigEndian.PutUint32(packet[numberOffset:], d.number)
	binary.BigEndian.PutUint32(packet[auditOffset:], d.audit)
	for i, arg := range d.args {
		binary.BigEndian.PutUint32(packet[argsOffset+8*i:], uint32(arg))
		binary.BigEndian.PutUint32(packet[argsOffset+8*i+4:], uint32(arg>>32))
	}
	got, err := v.vm.Run(packet)
	if err != nil {
		t.Fatal(err)
	}
	return answer(got)
}

// model interprets a profile rule by rule, as the package document says.
type model struct {
	profile   *specs.LinuxSeccomp
	own       *architecture
	otherwise answer
	rules     map[*architecture]map[uint32][]specs.LinuxSyscall // that name a syscall, in order
	last      map[*architecture]uint32
}

func newModel(profile *specs.LinuxSeccomp, machine string) *model {
	m := &model{
		profile: profile, own: map[string]*architecture{"amd64": amd64, "arm64": arm64}[machine],
		otherwise: modelAnswer(profile.DefaultAction, profile.DefaultErrnoRet),
		rules:     map[*architecture]map[uint32][]specs.LinuxSyscall{}, last: map[*architecture]uint32{},
	}
	for _, a := range []*architecture{m.own, m.own.compat} {
		m.rules[a] = map[uint32][]specs.LinuxSyscall{}
		for _, call := range profile.Syscalls {
			for _, name := range call.Names {
				n, ok := numberOf(name, a)
				if !ok {
					continue
				}
				if n < 0xf0000 {
					m.last[a] = max(m.last[a], n)
				}
				if modelAnswer(call.Action, call.ErrnoRet) != m.otherwise {
					m.rules[a][n] = append(m.rules[a][n], call)
				}
			}
		}
	}
	return m
}

func (m *model) run(d data) answer {
	a := m.own
	if d.audit != m.own.audit {
		if d.audit != m.own.compat.audit || !slices.Contains(m.profile.Architectures, m.own.compat.spec) {
			return killProcess
		}
		a = m.own.compat
		for i := range d.args {
			d.args[i] &= 0xffffffff
		}
	}
	if a == amd64 && d.number >= 0x40000000 {
		return 0x50026
	}
	rules := m.rules[a][d.number]
	for _, call := range rules {
		if len(call.Args) == 0 {
			return modelAnswer(call.Action, call.ErrnoRet)
		}
	}
	for _, call := range rules {
		if modelMatch(call.Args, d.args) {
			return modelAnswer(call.Action, call.ErrnoRet)
		}
	}
	lets := m.profile.DefaultAction == specs.ActAllow || m.profile.DefaultAction == specs.ActLog || m.profile.DefaultAction == specs.ActTrace
	if last := m.last[a]; !lets && last > 0 && d.number > last && len(rules) == 0 {
		return 0x50026
	}
	return m.otherwise
}

// numberOf looks through the table from its start.
func numberOf(name string, a *architecture) (uint32, bool) {
	for _, s := range syscalls {
		if s.name == name {
			return uint32(s.numbers[a.column]), s.numbers[a.column] >= 0
		}
	}
	return 0, false
}

func modelMatch(args []specs.LinuxSeccompArg, values [arguments]uint64) bool {
	met, repeated := 0, false
	for i, arg := range args {
		repeated = repeated || slices.ContainsFunc(args[:i], func(a specs.LinuxSeccompArg) bool { return a.Index == arg.Index })
		v := values[arg.Index]
		if arg.Op == specs.OpEqualTo && v == arg.Value || arg.Op == specs.OpNotEqual && v != arg.Value ||
			arg.Op == specs.OpLessThan && v < arg.Value || arg.Op == specs.OpLessEqual && v <= arg.Value ||
			arg.Op == specs.OpGreaterThan && v > arg.Value || arg.Op == specs.OpGreaterEqual && v >= arg.Value ||
			arg.Op == specs.OpMaskedEqual && (v^arg.ValueTwo)&arg.Value == 0 {
			met++
		}
	}
	return met == len(args) || repeated && met > 0
}

func modelAnswer(action specs.LinuxSeccompAction, number *uint) answer {
	n := uint(1)
	if number != nil {
		n = *number
	}
	switch action {
	case specs.ActKillProcess:
		return 0x80000000
	case specs.ActTrap:
		return 0x30000
	case specs.ActErrno:
		return answer(0x50000 | n)
	case specs.ActTrace:
		return answer(0x7ff00000 | n)
	case specs.ActLog:
		return 0x7ffc0000
	case specs.ActAllow:
		return 0x7fff0000
	default: // SCMP_ACT_KILL and _KILL_THREAD
		return 0
	}
}
