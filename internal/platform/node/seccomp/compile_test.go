// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"pgregory.net/rapid"
)

// machines are of both architectures.
var machines = []Machine{{Arch: "amd64", Kernel: Kernel{6, 18}}, {Arch: "arm64", Kernel: Kernel{6, 18}}}

func mustCompile(t testing.TB, profile *specs.LinuxSeccomp, m Machine) virtual {
	t.Helper()
	p, err := Compile(profile, m)
	if err != nil {
		t.Fatal(err)
	}
	return newVirtual(t, p)
}

// audits are the architectures of syscalls on a machine, and a foreign one.
func audits(m Machine) []*architecture {
	own, _ := native(m.Arch)
	return []*architecture{own, own.compat, {name: "foreign", audit: 0x80000016}}
}

// numbers are those of the table, their neighbours, and the edges of ranges.
func numbers() []uint32 {
	seen := map[uint32]bool{x32Bit: true, x32Bit + 1: true, x32Bit - 1: true, math.MaxUint32: true, math.MaxInt32: true, armPrivate: true}
	for _, s := range syscalls {
		for _, n := range s.numbers {
			if n >= 0 {
				seen[uint32(n)], seen[uint32(n)+1], seen[uint32(n)|x32Bit] = true, true, true
			}
		}
	}
	var all []uint32
	for n := range seen {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}

func number(n uint) *uint { return &n }

// TestMeaning tries what the package document says of profiles.
func TestMeaning(t *testing.T) {
	t.Parallel()
	arg := func(index uint, op specs.LinuxSeccompOperator, value ...uint64) specs.LinuxSeccompArg {
		a := specs.LinuxSeccompArg{Index: index, Op: op, Value: value[0]}
		if len(value) > 1 {
			a.ValueTwo = value[1]
		}
		return a
	}
	call := func(action specs.LinuxSeccompAction, name string, args ...specs.LinuxSeccompArg) specs.LinuxSyscall {
		return specs.LinuxSyscall{Names: []string{name}, Action: action, Args: args}
	}
	const (
		denied     = errno | eperm
		unknown    = errno | enosys
		socket     = 41 // on amd64
		socket32   = 359
		newest     = 471
		newestName = "rseq_slice_yield"
	)
	last := call(specs.ActAllow, newestName)
	for _, tt := range []struct {
		reason  string
		profile specs.LinuxSeccomp
		data    data
		want    answer
	}{
		{"the default", specs.LinuxSeccomp{DefaultAction: specs.ActErrno}, data{number: socket}, denied},
		{"the default's error", specs.LinuxSeccomp{DefaultAction: specs.ActErrno, DefaultErrnoRet: number(13)}, data{number: socket}, errno | 13},
		{"a profile without rules knows nothing", specs.LinuxSeccomp{DefaultAction: specs.ActErrno}, data{number: 9999}, denied},
		{"above all that the profile knows", specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{last}}, data{number: newest + 1}, unknown},
		{"the same, where threads are killed", specs.LinuxSeccomp{DefaultAction: specs.ActKill, Syscalls: []specs.LinuxSyscall{last}}, data{number: newest + 1}, unknown},
		{"the same, where all is allowed", specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{call(specs.ActErrno, newestName)}}, data{number: newest + 1}, allow},
		{"a rule that says what the default does shows what the profile knows", specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{
			call(specs.ActAllow, "read"), call(specs.ActErrno, newestName)}}, data{number: newest}, denied},
		{"x32", specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Architectures: []specs.Arch{specs.ArchX32}}, data{number: x32Bit | 39}, unknown},
		{"a foreign architecture", specs.LinuxSeccomp{DefaultAction: specs.ActAllow}, data{audit: arm64.audit}, killProcess},
		{"the old one, not listed", specs.LinuxSeccomp{DefaultAction: specs.ActAllow}, data{audit: i386.audit}, killProcess},
		{"the old one, listed", specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Architectures: []specs.Arch{specs.ArchX86}}, data{audit: i386.audit}, allow},
		{"the machine's own, not listed", specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Architectures: []specs.Arch{specs.ArchX86}}, data{}, allow},
		{"a rule without conditions, after one with", specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{
			call(specs.ActTrap, "socket", arg(0, specs.OpEqualTo, 1)), call(specs.ActAllow, "socket")}}, data{number: socket, args: [6]uint64{1}}, allow},
		{"two without conditions", specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{
			call(specs.ActTrap, "socket"), call(specs.ActAllow, "socket")}}, data{number: socket}, trap},
		{"the first with conditions", specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{
			call(specs.ActTrap, "socket", arg(0, specs.OpEqualTo, 1)), call(specs.ActAllow, "socket", arg(0, specs.OpLessThan, 9))}}, data{number: socket, args: [6]uint64{1}}, trap},
		{"a rule with the default action is no rule", specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{
			call(specs.ActErrno, "socket", arg(0, specs.OpEqualTo, 1)), call(specs.ActAllow, "socket", arg(0, specs.OpLessThan, 9))}}, data{number: socket, args: [6]uint64{1}}, allow},
		{"all conditions of a rule", specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{
			last, call(specs.ActAllow, "socket", arg(0, specs.OpEqualTo, 1), arg(1, specs.OpEqualTo, 2))}}, data{number: socket, args: [6]uint64{1, 3}}, denied},
		{"any of those on one argument", specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{
			last, call(specs.ActAllow, "socket", arg(0, specs.OpGreaterThan, 5), arg(0, specs.OpLessThan, 3))}}, data{number: socket, args: [6]uint64{2}}, allow},
		{"the upper half counts", specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{
			last, call(specs.ActAllow, "socket", arg(0, specs.OpEqualTo, 2))}}, data{number: socket, args: [6]uint64{1<<32 | 2}}, denied},
		{"the upper half does not, where there is none", specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Architectures: []specs.Arch{specs.ArchX86}, Syscalls: []specs.LinuxSyscall{
			last, call(specs.ActAllow, "socket", arg(0, specs.OpEqualTo, 2))}}, data{audit: i386.audit, number: socket32, args: [6]uint64{1<<32 | 2}}, allow},
		{"bits outside of the mask do not count, in value and argument", specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{
			last, call(specs.ActAllow, "socket", arg(0, specs.OpMaskedEqual, 1<<40|6, 1<<40|0xf2))}}, data{number: socket, args: [6]uint64{1<<41 | 1<<40 | 3}}, allow},
		{"a name that nobody knows", specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{
			last, {Names: []string{"no_such_syscall", "socket"}, Action: specs.ActAllow}}}, data{number: socket}, allow},
		{"a tracer's number", specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{
			{Names: []string{"socket"}, Action: specs.ActTrace, ErrnoRet: number(65535)}}}, data{number: socket}, trace | 65535},
	} {
		if tt.data.audit == 0 {
			tt.data.audit = amd64.audit
		}
		if got := mustCompile(t, &tt.profile, machines[0]).run(t, tt.data); got != tt.want {
			t.Errorf("%s: got %#x, want %#x", tt.reason, got, tt.want)
		}
		if got := newModel(&tt.profile, "amd64").run(tt.data); got != tt.want {
			t.Errorf("%s: the model says %#x, want %#x", tt.reason, got, tt.want)
		}
	}
}

// values are likely to meet conditions, or nearly.
func values() *rapid.Generator[uint64] {
	return rapid.OneOf(
		rapid.Uint64Range(0, 8),
		rapid.SampledFrom([]uint64{math.MaxUint32, math.MaxUint32 - 1, 1 << 32, 1<<32 + 1, 5<<32 | 3, 5<<32 | 4, 6 << 32, math.MaxUint64, math.MaxUint64 - 1, 0xffffffff00000000, 0x7e020000, 1 << 63}),
		rapid.Uint64(),
	)
}

// profiles are random ones.
func profiles() *rapid.Generator[*specs.LinuxSeccomp] {
	var names []string
	for i, s := range syscalls {
		if i%9 == 0 { // few, for several rules on each
			names = append(names, s.name)
		}
	}
	names = append(names, "read", "cacheflush", "set_tls", "restart_syscall", "no_such_syscall", "rseq_slice_yield")
	actions := rapid.SampledFrom([]specs.LinuxSeccompAction{specs.ActAllow, specs.ActAllow, specs.ActErrno, specs.ActErrno, specs.ActTrace, specs.ActLog, specs.ActTrap, specs.ActKill, specs.ActKillThread, specs.ActKillProcess})
	errnos := rapid.SampledFrom([]*uint{nil, nil, number(0), number(1), number(38), number(4095)})
	operators := rapid.SampledFrom([]specs.LinuxSeccompOperator{specs.OpEqualTo, specs.OpNotEqual, specs.OpLessThan, specs.OpLessEqual, specs.OpGreaterThan, specs.OpGreaterEqual, specs.OpMaskedEqual})
	return rapid.Custom(func(t *rapid.T) *specs.LinuxSeccomp {
		p := &specs.LinuxSeccomp{DefaultAction: actions.Draw(t, "default"), DefaultErrnoRet: errnos.Draw(t, "errno")}
		p.Architectures = rapid.SliceOfN(rapid.SampledFrom([]specs.Arch{specs.ArchX86, specs.ArchX86_64, specs.ArchX32, specs.ArchARM, specs.ArchAARCH64, specs.ArchS390X}), 0, 3).Draw(t, "architectures")
		simple := rapid.Bool().Draw(t, "one argument")
		for range rapid.IntRange(0, 30).Draw(t, "rules") {
			call := specs.LinuxSyscall{Action: actions.Draw(t, "action"), ErrnoRet: errnos.Draw(t, "errno")}
			call.Names = rapid.SliceOfN(rapid.SampledFrom(names), 1, 6).Draw(t, "names")
			for range rapid.IntRange(0, 3).Draw(t, "conditions") {
				arg := specs.LinuxSeccompArg{Op: operators.Draw(t, "op"), Value: values().Draw(t, "value")}
				if !simple {
					arg.Index = rapid.UintRange(0, 5).Draw(t, "index")
				}
				if arg.Op == specs.OpMaskedEqual {
					arg.ValueTwo = values().Draw(t, "second value")
				}
				call.Args = append(call.Args, arg)
			}
			p.Syscalls = append(p.Syscalls, call)
		}
		return p
	})
}

// TestRandomProfiles holds programs to the model.
func TestRandomProfiles(t *testing.T) {
	t.Parallel()
	all := numbers()
	rapid.Check(t, func(rt *rapid.T) {
		profile := profiles().Draw(rt, "profile")
		m := rapid.SampledFrom(machines).Draw(rt, "machine")
		p, err := Compile(profile, m)
		if err != nil {
			rt.Fatal(err)
		}
		v, want := newVirtual(t, p), newModel(profile, m.Arch)
		try := func(d data) {
			if got, want := v.run(t, d), want.run(d); got != want {
				rt.Fatalf("%s, %+v: got %#x, want %#x", m.Arch, d, got, want)
			}
		}
		own, _ := native(m.Arch)
		for range 40 {
			d := data{
				audit:  rapid.SampledFrom([]uint32{own.audit, own.audit, own.audit, own.compat.audit, own.compat.audit, 0x80000016}).Draw(rt, "audit"),
				number: rapid.OneOf(rapid.SampledFrom(all), rapid.Uint32()).Draw(rt, "number"),
			}
			var conditions []specs.LinuxSeccompArg
			if len(profile.Syscalls) > 0 && rapid.IntRange(0, 9).Draw(rt, "named") > 0 { // mostly syscalls with rules
				call := rapid.SampledFrom(profile.Syscalls).Draw(rt, "rule")
				a := own
				if d.audit == own.compat.audit {
					a = own.compat
				}
				if n, ok := numberOf(rapid.SampledFrom(call.Names).Draw(rt, "name"), a); ok {
					d.number = n
				}
				conditions = call.Args
			}
			for i := range d.args {
				d.args[i] = values().Draw(rt, "argument")
			}
			for _, c := range conditions { // mostly close to what is compared
				if rapid.IntRange(0, 3).Draw(rt, "near") > 0 {
					d.args[c.Index] = c.Value + uint64(rapid.IntRange(-1, 1).Draw(rt, "distance"))
					if c.Op == specs.OpMaskedEqual {
						d.args[c.Index] = c.ValueTwo&c.Value | d.args[5]&^c.Value
					}
				}
			}
			try(d)
		}
	})
}

// TestLongJumps compiles profiles with more instructions than a conditional jump can
// skip, and more than the kernel takes.
func TestLongJumps(t *testing.T) {
	t.Parallel()
	profile := &specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Architectures: []specs.Arch{specs.ArchX86, specs.ArchARM}}
	grow := func(i int, name string) {
		profile.Syscalls = append(profile.Syscalls, specs.LinuxSyscall{Names: []string{name}, Action: specs.ActErrno, ErrnoRet: number(uint(i)%4000 + 2), Args: []specs.LinuxSeccompArg{
			{Index: 1, Op: specs.OpMaskedEqual, Value: 1<<33 | 1, ValueTwo: 1}, {Index: 2, Op: specs.OpGreaterThan, Value: uint64(i) << 30},
		}})
	}
	for i, s := range syscalls {
		if i%3 == 0 {
			grow(i, s.name)
		}
	}
	for _, m := range machines {
		v, want := mustCompile(t, profile, m), newModel(profile, m.Arch)
		for _, a := range audits(m) {
			for _, n := range numbers() {
				for _, args := range [][arguments]uint64{{}, {0, 1, math.MaxUint64}, {0, 1, 200 << 30}, {0, 1 << 33, math.MaxUint64}} {
					d := data{audit: a.audit, number: n, args: args}
					if got, want := v.run(t, d), want.run(d); got != want {
						t.Fatalf("%s, syscall %d of %s with %v: got %#x, want %#x", m.Arch, n, a.name, args, got, want)
					}
				}
			}
		}
	}
	for i, s := range syscalls {
		if i%3 != 0 {
			grow(i, s.name)
			grow(i+1, s.name)
		}
	}
	for _, m := range machines {
		if _, err := Compile(profile, m); err == nil || !strings.Contains(err.Error(), "instructions") {
			t.Errorf("%s: a program that the kernel would refuse: %v", m.Arch, err)
		}
	}
}

// TestCompileErrors gives rules to Compile that no profile was made of.
func TestCompileErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason  string
		profile specs.LinuxSeccomp
		arch    string
		want    string
	}{
		{"another machine", specs.LinuxSeccomp{DefaultAction: specs.ActAllow}, "riscv64", "this machine is riscv64"},
		{"no action", specs.LinuxSeccomp{}, "amd64", "defaultAction is missing"},
		{"a rule", specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{{Names: []string{"read"}, Action: "DENY"}}}, "amd64", `syscalls[0].action is "DENY"`},
	} {
		if _, err := Compile(&tt.profile, Machine{Arch: tt.arch}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.reason, err, tt.want)
		}
	}
}

// TestFlags gives the kernel the flags that it has.
func TestFlags(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason string
		flags  []specs.LinuxSeccompFlag
		kernel Kernel
		want   uint32
	}{
		{"nothing said", nil, Kernel{6, 1}, flagSpecAllow},
		{"nothing said, an old kernel", nil, Kernel{4, 16}, 0},
		{"none", []specs.LinuxSeccompFlag{}, Kernel{6, 1}, 0},
		{"some", []specs.LinuxSeccompFlag{specs.LinuxSeccompFlagLog, specs.LinuxSeccompFlagWaitKillableRecv}, Kernel{6, 1}, flagLog},
	} {
		p, err := Compile(&specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Flags: tt.flags}, Machine{Arch: "amd64", Kernel: tt.kernel})
		if err != nil || p.Flags != tt.want {
			t.Errorf("%s: got %v, %v, want %v", tt.reason, p, err, tt.want)
		}
	}
}

// TestTable holds the lines of the table in order, without numbers that mean two things.
func TestTable(t *testing.T) {
	t.Parallel()
	for _, a := range []*architecture{amd64, i386, arm64, arm} {
		seen := map[int32]string{}
		for i, s := range syscalls {
			if i > 0 && s.name <= syscalls[i-1].name {
				t.Errorf("%s comes after %s", s.name, syscalls[i-1].name)
			}
			n := s.numbers[a.column]
			if n >= 0 && seen[n] != "" {
				t.Errorf("%s: %s and %s are both %d", a.name, s.name, seen[n], n)
			}
			seen[n] = s.name
			if got, ok := a.number(s.name); ok != (n >= 0) || ok && got != uint32(n) {
				t.Errorf("%s: %s has number %d, %v, want %d", a.name, s.name, got, ok, n)
			}
		}
	}
	if n, ok := amd64.number("nothing"); ok {
		t.Error("a syscall without a name has number ", n)
	}
}
