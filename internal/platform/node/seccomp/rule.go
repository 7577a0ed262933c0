// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// answer is what the kernel does about a syscall: a value of SECCOMP_RET_…, with its data.
type answer uint32

const (
	killProcess answer = 0x80000000
	killThread  answer = 0x00000000
	trap        answer = 0x00030000
	errno       answer = 0x00050000 // | the number
	trace       answer = 0x7ff00000 // | what the tracer gets
	log         answer = 0x7ffc0000 // and allow
	allow       answer = 0x7fff0000

	kindMask answer = 0xffff0000
)

// Errors of Linux on the architectures here; those of package syscall are this system's.
const (
	eperm  = 1
	enosys = 38
	// maxErrno is the largest that the kernel returns.
	maxErrno = 4095
	// maxData is the largest that an answer holds.
	maxData = 65535
)

// permits reports whether a syscall with this answer happens or, for trace, is somebody
// else's to decide.
func (a answer) permits() bool {
	kind := a & kindMask
	return kind == allow || kind == log || kind == trace
}

// parseAnswer reads an action and the number that goes with some.
func parseAnswer(field string, action specs.LinuxSeccompAction, numberField string, number *uint) (answer, error) {
	kind, data, limit := errno, uint(eperm), uint(maxErrno)
	switch action {
	case specs.ActKill, specs.ActKillThread:
		return killThread, nil
	case specs.ActKillProcess:
		return killProcess, nil
	case specs.ActTrap:
		return trap, nil
	case specs.ActLog:
		return log, nil
	case specs.ActAllow:
		return allow, nil
	case specs.ActErrno:
	case specs.ActTrace:
		kind, limit = trace, maxData
	case specs.ActNotify:
		return 0, fmt.Errorf("%s is %s, which needs a program that answers each syscall: use %s", field, action, specs.ActErrno)
	case "":
		return 0, fmt.Errorf("%s is missing: use %s or %s", field, specs.ActErrno, specs.ActAllow)
	default:
		return 0, fmt.Errorf("%s is %q: use %s, %s, %s, %s, %s, %s or %s", field, action, specs.ActErrno, specs.ActAllow,
			specs.ActLog, specs.ActTrap, specs.ActTrace, specs.ActKillThread, specs.ActKillProcess)
	}
	if number != nil {
		data = *number
	}
	if data > limit {
		return 0, fmt.Errorf("%s is %d: use 0 to %d", numberField, data, limit)
	}
	return kind | answer(data), nil
}

// operator is how a condition compares an argument with a value.
type operator int

const (
	equal operator = iota
	notEqual
	less
	lessOrEqual
	greater
	greaterOrEqual
	maskedEqual
)

var operators = map[specs.LinuxSeccompOperator]operator{
	specs.OpEqualTo: equal, specs.OpNotEqual: notEqual, specs.OpLessThan: less, specs.OpLessEqual: lessOrEqual,
	specs.OpGreaterThan: greater, specs.OpGreaterEqual: greaterOrEqual, specs.OpMaskedEqual: maskedEqual,
}

// condition is one on an argument of a syscall. All bits count, but for maskedEqual
// those of mask.
type condition struct {
	index uint // of the argument, 0 to 5
	op    operator
	value uint64
	mask  uint64
}

// arguments is how many a syscall has.
const arguments = 6

// holds reports whether an argument meets the condition.
func (c condition) holds(argument uint64) bool {
	switch c.op {
	case equal:
		return argument == c.value
	case notEqual:
		return argument != c.value
	case less:
		return argument < c.value
	case lessOrEqual:
		return argument <= c.value
	case greater:
		return argument > c.value
	case greaterOrEqual:
		return argument >= c.value
	default:
		return argument&c.mask == c.value
	}
}

// rule is one of a profile, checked.
type rule struct {
	names  []string
	answer answer
	all    []condition // that must hold
}

// parseRule checks a rule, which the profile has in the named field.
func parseRule(field string, call specs.LinuxSyscall) (rule, error) {
	a, err := parseAnswer(field+".action", call.Action, field+".errnoRet", call.ErrnoRet)
	if err != nil {
		return rule{}, err
	}
	if len(call.Names) == 0 {
		return rule{}, fmt.Errorf("%s.names is missing: name syscalls, or remove the rule", field)
	}
	if slices.Contains(call.Names, "") {
		return rule{}, fmt.Errorf("%s.names has an empty name: remove it", field)
	}
	r := rule{names: call.Names, answer: a}
	for i, arg := range call.Args {
		op, ok := operators[arg.Op]
		if !ok {
			return rule{}, fmt.Errorf("%s.args[%d].op is %q: use SCMP_CMP_EQ, _NE, _LT, _LE, _GT, _GE or _MASKED_EQ", field, i, arg.Op)
		}
		if arg.Index >= arguments {
			return rule{}, fmt.Errorf("%s.args[%d].index is %d: use 0 to %d", field, i, arg.Index, arguments-1)
		}
		c := condition{index: arg.Index, op: op, value: arg.Value}
		if op == maskedEqual {
			c.mask, c.value = arg.Value, arg.ValueTwo&arg.Value
		}
		r.all = append(r.all, c)
	}
	return r, nil
}

// branches returns the conjunctions of conditions, one of which must hold: one, but for
// several conditions on one argument each of them.
func (r rule) branches() [][]condition {
	seen := map[uint]bool{}
	for _, c := range r.all {
		if seen[c.index] {
			each := make([][]condition, len(r.all))
			for i := range r.all {
				each[i] = r.all[i : i+1]
			}
			return each
		}
		seen[c.index] = true
	}
	return [][]condition{r.all}
}

// Flags of seccomp(2).
const (
	flagLog       = 1 << 1
	flagSpecAllow = 1 << 2
)

// frame is what a profile has beside rules.
type frame struct {
	otherwise answer
	flags     uint32 // of seccomp(2)
	plain     bool   // the profile says nothing of flags
	archs     []specs.Arch
}

// parseFrame checks all of a profile but its rules.
func parseFrame(s *specs.LinuxSeccomp) (frame, error) {
	f := frame{plain: s.Flags == nil, archs: s.Architectures}
	var err error
	if f.otherwise, err = parseAnswer("defaultAction", s.DefaultAction, "defaultErrnoRet", s.DefaultErrnoRet); err != nil {
		return frame{}, err
	}
	if err := checkArchitectures("architectures", s.Architectures); err != nil {
		return frame{}, err
	}
	for i, flag := range s.Flags {
		switch flag {
		case specs.LinuxSeccompFlagLog:
			f.flags |= flagLog
		case specs.LinuxSeccompFlagSpecAllow:
			f.flags |= flagSpecAllow
		case specs.LinuxSeccompFlagWaitKillableRecv: // is of SCMP_ACT_NOTIFY alone
		default:
			return frame{}, fmt.Errorf("flags[%d] is %q: use %s or %s", i, flag, specs.LinuxSeccompFlagLog, specs.LinuxSeccompFlagSpecAllow)
		}
	}
	return f, nil
}

// checkArchitectures refuses names that nobody knows. Those of other machines are fine.
func checkArchitectures(field string, archs []specs.Arch) error {
	for _, a := range archs {
		if !slices.Contains(known, a) {
			return fmt.Errorf("%s has %q: use names such as %s and %s", field, a, specs.ArchX86_64, specs.ArchAARCH64)
		}
	}
	return nil
}
