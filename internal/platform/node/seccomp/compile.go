// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/net/bpf"
)

// maxInstructions is the length of the longest program that the kernel takes.
const maxInstructions = 4096

// specAllowSince is the first kernel with the flag that leaves speculative stores alone.
var specAllowSince = Kernel{4, 17}

// Compile returns the program of a profile for a machine. Errors name the field.
func Compile(profile *specs.LinuxSeccomp, m Machine) (*Program, error) {
	own, err := native(m.Arch)
	if err != nil {
		return nil, err
	}
	frame, err := parseFrame(profile)
	if err != nil {
		return nil, err
	}
	rules := make([]rule, len(profile.Syscalls))
	for i, call := range profile.Syscalls {
		if rules[i], err = parseRule(fmt.Sprintf("syscalls[%d]", i), call); err != nil {
			return nil, err
		}
	}
	if frame.plain && m.Kernel.least(specAllowSince) {
		frame.flags |= flagSpecAllow // as runc does: else kernels before 5.16 slow the container down
	}
	e := newEmitter()
	start := e.answer(killProcess) // a foreign architecture's end
	if slices.Contains(frame.archs, own.compat.spec) {
		start = e.jump(bpf.JumpEqual, own.compat.audit, e.architecture(own.compat, rules, frame.otherwise), start)
	}
	start = e.jump(bpf.JumpEqual, own.audit, e.architecture(own, rules, frame.otherwise), start)
	e.load(auditOffset, start)
	code := e.program()
	if len(code) > maxInstructions {
		return nil, fmt.Errorf("the profile has %d instructions of BPF, and the kernel takes %d: use fewer rules with conditions", len(code), maxInstructions)
	}
	raw, err := bpf.Assemble(code)
	if err != nil {
		return nil, fmt.Errorf("cannot assemble the program: %w", err)
	}
	return &Program{instructions: raw, Flags: frame.flags}, nil
}

// architecture writes the part of the program for one architecture.
func (e *emitter) architecture(a *architecture, rules []rule, otherwise answer) place {
	decisions, last := decide(rules, a, otherwise)
	edges := make([]uint32, 1, 2*len(decisions)+3) // 0, and where the result may change
	for number := range decisions {
		edges = append(edges, number, number+1)
	}
	unknown := otherwise
	if last > 0 && !otherwise.permits() {
		unknown = errno | enosys
		edges = append(edges, last+1)
	}
	if a == amd64 {
		edges = append(edges, x32Bit)
	}
	blocks := map[string]place{} // by the decision that they evaluate
	result := func(number uint32) leaf {
		d, decided := decisions[number]
		switch {
		case a == amd64 && number >= x32Bit:
			return leaf{answer: errno | enosys}
		case !decided && number > last:
			return leaf{answer: unknown}
		case !decided:
			return leaf{answer: otherwise}
		case len(d.branches) == 0:
			return leaf{answer: d.otherwise}
		}
		key := fmt.Sprint(d)
		if _, ok := blocks[key]; !ok {
			blocks[key] = e.decision(d, a.narrow)
		}
		return leaf{block: blocks[key], elsewhere: true}
	}
	slices.Sort(edges)
	spans := make([]span[leaf], 0, len(edges))
	for _, edge := range slices.Compact(edges) {
		spans = append(spans, span[leaf]{edge, result(edge)})
	}
	return e.load(numberOffset, search(e, merge(spans), e.leaf))
}
