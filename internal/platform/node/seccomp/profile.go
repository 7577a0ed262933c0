// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"sigs.k8s.io/json"
)

// Profile says what the syscalls of a container get. Some of its rules may be for
// certain machines. It does not change, and is for any number of goroutines.
type Profile struct {
	source document
	// Ignored are complaints about fields outside of the rules that no format has. On a
	// cluster, too, a container starts in spite of them.
	Ignored []string
}

// document is the content of a file. Docker's format adds to OCI's what is not of
// the embedded types.
type document struct {
	specs.LinuxSeccomp
	ArchMap  []seccomp.Architecture `json:"archMap"`
	Syscalls []entry                `json:"syscalls"`
}

// entry is a rule, for all machines or for some.
type entry struct {
	specs.LinuxSyscall
	Name     string          `json:"name"` // instead of names, in old files
	Comment  string          `json:"comment"`
	Includes *seccomp.Filter `json:"includes"`
	Excludes *seccomp.Filter `json:"excludes"`
}

// Parse reads a profile in the JSON of Docker, or in OCI's, which is a part of it.
// Errors name the field.
func Parse(text []byte) (*Profile, error) {
	p := &Profile{}
	if twice, err := json.UnmarshalStrict(text, &p.source, json.DisallowDuplicateFields); err != nil || len(twice) > 0 {
		return nil, fmt.Errorf("cannot read the seccomp profile: %w", errors.Join(append(twice, err)...))
	}
	unknown, err := json.UnmarshalStrict(text, &document{}, json.DisallowUnknownFields)
	if err != nil {
		return nil, fmt.Errorf("cannot read the seccomp profile: %w", err)
	}
	for _, u := range unknown {
		// A field of a rule may narrow it: without the field it could allow too much.
		if strings.ContainsAny(u.Error(), ".[") {
			return nil, fmt.Errorf("cannot read the seccomp profile: %w: remove the field or mend its name", u)
		}
		p.Ignored = append(p.Ignored, u.Error())
	}
	if err := p.validate(); err != nil {
		return nil, fmt.Errorf("the seccomp profile is invalid: %w", err)
	}
	return p, nil
}

// validate finds what would only be found when a container starts, and names the field
// of the file, of which Resolve leaves out some.
func (p *Profile) validate() error {
	s := p.source
	if len(s.Architectures) > 0 && len(s.ArchMap) > 0 {
		return errors.New("it has both architectures and archMap: keep one of them")
	}
	for i, a := range s.ArchMap {
		if err := checkArchitectures(fmt.Sprintf("archMap[%d]", i), append([]specs.Arch{a.Arch}, a.SubArches...)); err != nil {
			return err
		}
	}
	if _, err := parseFrame(&s.LinuxSeccomp); err != nil {
		return err
	}
	for i, call := range s.Syscalls {
		field := fmt.Sprintf("syscalls[%d]", i)
		if call.Name != "" && len(call.Names) > 0 {
			return fmt.Errorf("%s has both name and names: keep names", field)
		}
		if _, err := parseRule(field, call.rule()); err != nil {
			return err
		}
	}
	return nil
}

// rule returns the rule without what limits it to machines.
func (e entry) rule() specs.LinuxSyscall {
	rule := e.LinuxSyscall
	if e.Name != "" {
		rule.Names = []string{e.Name}
	}
	return rule
}

// Resolve returns the rules that are for this machine.
func (p *Profile) Resolve(m Machine) (*specs.LinuxSeccomp, error) {
	arch, err := native(m.Arch)
	if err != nil {
		return nil, err
	}
	resolved := p.source.LinuxSeccomp
	for _, a := range p.source.ArchMap {
		if a.Arch == arch.spec {
			resolved.Architectures = append([]specs.Arch{a.Arch}, a.SubArches...)
		}
	}
	resolved.Syscalls = nil
	for _, call := range p.source.Syscalls {
		if included(call.Includes, m) && !excluded(call.Excludes, m) {
			resolved.Syscalls = append(resolved.Syscalls, call.rule())
		}
	}
	return &resolved, nil
}

// included reports whether the machine is all that a rule asks for.
func included(f *seccomp.Filter, m Machine) bool {
	if f == nil {
		return true
	}
	for _, c := range f.Caps {
		if !slices.Contains(m.Capabilities, c) {
			return false
		}
	}
	return (len(f.Arches) == 0 || slices.Contains(f.Arches, m.Arch)) && (f.MinKernel == nil || m.Kernel.least(kernelOf(*f.MinKernel)))
}

// excluded reports whether the machine is something that a rule is not for.
func excluded(f *seccomp.Filter, m Machine) bool {
	if f == nil {
		return false
	}
	has := func(c string) bool { return slices.Contains(m.Capabilities, c) }
	return slices.ContainsFunc(f.Caps, has) || slices.Contains(f.Arches, m.Arch) || f.MinKernel != nil && m.Kernel.least(kernelOf(*f.MinKernel))
}
