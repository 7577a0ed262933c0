// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/runtime-spec/specs-go"
	corev1 "k8s.io/api/core/v1"
)

// TestParse refuses what would not be what its author meant.
func TestParse(t *testing.T) {
	t.Parallel()
	const start = `{"defaultAction": "SCMP_ACT_ERRNO", `
	for _, tt := range []struct{ reason, text, want string }{
		{"OCI's format", start + `"syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 18446744073709551615, "op": "SCMP_CMP_EQ"}]}]}`, ""},
		{"Docker's", start + `"archMap": [{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86"]}], "syscalls": [{"name": "read", "action": "SCMP_ACT_ALLOW", "comment": "", "includes": {"minKernel": "4.8"}}]}`, ""},
		{"all architectures of libseccomp are fine", start + `"architectures": ["SCMP_ARCH_S390X"]}`, ""},
		{"a field that nobody knows", start + `"description": "of mine"}`, ""},
		{"nothing", ``, "unexpected end of JSON"},
		{"something after it", start + `"syscalls": []} {}`, "invalid character"},
		{"no object", `[]`, "cannot unmarshal array"},
		{"null", `null`, "defaultAction is missing"},
		{"no action", `{}`, "defaultAction is missing"},
		{"the wrong case", `{"DefaultAction": "SCMP_ACT_ALLOW"}`, "defaultAction is missing"},
		{"a field twice", start + `"defaultAction": "SCMP_ACT_ALLOW"}`, `duplicate field "defaultAction"`},
		{"a field twice in a rule", start + `"syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [], "args": []}]}`, `duplicate field "syscalls[0].args"`},
		{"a condition by another name", start + `"syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW", "arg": []}]}`, `unknown field "syscalls[0].arg"`},
		{"an action", `{"defaultAction": "EPERM"}`, `defaultAction is "EPERM": use SCMP_ACT_ERRNO, `},
		{"notification", start + `"syscalls": [{"names": ["read"], "action": "SCMP_ACT_NOTIFY"}]}`, "syscalls[0].action is SCMP_ACT_NOTIFY, which needs"},
		{"an error", start + `"syscalls": [{"names": ["read"], "action": "SCMP_ACT_ERRNO", "errnoRet": 4096}]}`, "syscalls[0].errnoRet is 4096: use 0 to 4095"},
		{"the default's error", start + `"defaultErrnoRet": 70000}`, "defaultErrnoRet is 70000"},
		{"a tracer's number", `{"defaultAction": "SCMP_ACT_TRACE", "defaultErrnoRet": 65536}`, "defaultErrnoRet is 65536: use 0 to 65535"},
		{"a negative error", start + `"defaultErrnoRet": -1}`, "cannot unmarshal number -1"},
		{"no names", start + `"syscalls": [{"action": "SCMP_ACT_ALLOW"}]}`, "syscalls[0].names is missing"},
		{"an empty name", start + `"syscalls": [{"names": ["read", ""], "action": "SCMP_ACT_ALLOW"}]}`, "syscalls[0].names has an empty name"},
		{"two ways to name", start + `"syscalls": [{"names": ["read"], "name": "write", "action": "SCMP_ACT_ALLOW"}]}`, "syscalls[0] has both name and names"},
		{"no rule", start + `"syscalls": [null]}`, "syscalls[0].action is missing"},
		{"the right field though the machine lacks the first rule", start + `"syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW", "includes": {"arches": ["s390x"]}}, {"names": ["read"], "action": "ALLOW"}]}`, `syscalls[1].action is "ALLOW"`},
		{"an operator", start + `"syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "op": "=="}]}]}`, `syscalls[0].args[0].op is "=="`},
		{"an argument", start + `"syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 6, "op": "SCMP_CMP_EQ"}]}]}`, `syscalls[0].args[0].index is 6: use 0 to 5`},
		{"a value", start + `"syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [{"value": 18446744073709551616, "op": "SCMP_CMP_EQ"}]}]}`, `cannot unmarshal number 18446744073709551616`},
		{"an architecture", start + `"architectures": ["amd64"]}`, `architectures has "amd64"`},
		{"an architecture of the map", start + `"archMap": [{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["x86"]}]}`, `archMap[0] has "x86"`},
		{"two lists of architectures", start + `"architectures": ["SCMP_ARCH_X86"], "archMap": [{"architecture": "SCMP_ARCH_X86_64"}]}`, "both architectures and archMap"},
		{"a flag", start + `"flags": ["LOG"]}`, `flags[0] is "LOG"`},
		{"a kernel", start + `"syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW", "includes": {"minKernel": "new"}}]}`, "invalid kernel version"},
	} {
		_, err := Parse([]byte(tt.text))
		if got := ""; err != nil {
			got = err.Error()
			if tt.want == "" || !strings.Contains(got, tt.want) {
				t.Errorf("%s: got %q, want %q", tt.reason, got, tt.want)
			}
		} else if tt.want != "" {
			t.Errorf("%s: no error, want %q", tt.reason, tt.want)
		}
	}
	p, err := Parse([]byte(start + `"description": "of mine"}`))
	if err != nil || len(p.Ignored) != 1 || !strings.Contains(p.Ignored[0], `"description"`) {
		t.Errorf("a field that nobody knows: %v, complaints %q", err, p.Ignored)
	}
}

// TestResolve chooses the rules of a machine.
func TestResolve(t *testing.T) {
	t.Parallel()
	p, err := Parse([]byte(`{"defaultAction": "SCMP_ACT_ERRNO",
		"archMap": [{"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": ["SCMP_ARCH_ARM"]}, {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86"]}],
		"syscalls": [
			{"name": "always", "action": "SCMP_ACT_ALLOW"},
			{"names": ["both-caps"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN", "CAP_BPF"]}},
			{"names": ["neither-cap"], "action": "SCMP_ACT_ALLOW", "excludes": {"caps": ["CAP_SYS_ADMIN", "CAP_BPF"]}},
			{"names": ["intel"], "action": "SCMP_ACT_ALLOW", "includes": {"arches": ["amd64", "x86"]}},
			{"names": ["not-intel"], "action": "SCMP_ACT_ALLOW", "excludes": {"arches": ["amd64"]}},
			{"names": ["new"], "action": "SCMP_ACT_ALLOW", "includes": {"minKernel": "5.10"}},
			{"names": ["old"], "action": "SCMP_ACT_ALLOW", "excludes": {"minKernel": "5.10"}},
			{"names": ["new-intel-not-bpf"], "action": "SCMP_ACT_ALLOW", "includes": {"minKernel": "5.10", "arches": ["amd64"]}, "excludes": {"caps": ["CAP_BPF"]}}
		]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		machine Machine
		archs   []specs.Arch
		want    string
	}{
		{Machine{Arch: "amd64", Kernel: Kernel{5, 10}}, []specs.Arch{specs.ArchX86_64, specs.ArchX86}, "always neither-cap intel new new-intel-not-bpf"},
		{Machine{Arch: "amd64", Kernel: Kernel{6, 1}, Capabilities: []string{"CAP_BPF"}}, []specs.Arch{specs.ArchX86_64, specs.ArchX86}, "always intel new"},
		{Machine{Arch: "arm64", Kernel: Kernel{5, 9}, Capabilities: []string{"CAP_BPF", "CAP_SYS_ADMIN"}}, []specs.Arch{specs.ArchAARCH64, specs.ArchARM}, "always both-caps not-intel old"},
	} {
		resolved, err := p.Resolve(tt.machine)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, call := range resolved.Syscalls {
			names = append(names, call.Names...)
		}
		if diff := cmp.Diff(tt.want, strings.Join(names, " ")); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.machine, diff)
		}
		if diff := cmp.Diff(tt.archs, resolved.Architectures); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.machine, diff)
		}
	}
	if _, err := p.Resolve(Machine{Arch: "s390x"}); err == nil || !strings.Contains(err.Error(), "s390x") {
		t.Errorf("a machine of another architecture: %v", err)
	}
}

func TestParseKernel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		release string
		want    Kernel
		ok      bool
	}{
		{"6.18.44-fc-v669", Kernel{6, 18}, true},
		{"3.12-1-amd64", Kernel{3, 12}, true},
		{"5.4", Kernel{5, 4}, true},
		{"linux", Kernel{}, false},
		{"", Kernel{}, false},
	} {
		if got, err := parseKernel(tt.release); got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%q: got %v, %v, want %v", tt.release, got, err, tt.want)
		}
	}
}

// TestLoad reads profiles below a directory and nothing else.
func TestLoad(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, "profiles")
	const good = `{"defaultAction": "SCMP_ACT_ALLOW"}`
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(top, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("outside.json", good)
	write("profiles/team/good.json", good)
	write("profiles/bad.json", `{"defaultAction": "DENY"}`)
	write("profiles/large.json", good+strings.Repeat(" ", maxFile))
	write("profiles/largest.json", good+strings.Repeat(" ", maxFile-len(good)))
	if err := os.Symlink("../outside.json", filepath.Join(dir, "link.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("team/good.json", filepath.Join(dir, "inner.json")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ reason, name, want string }{
		{"a file", "team/good.json", ""},
		{"the largest", "largest.json", ""},
		{"a link that stays inside", "inner.json", ""},
		{"a missing file", "none.json", "put it into " + dir},
		{"a wrong one", "bad.json", `bad.json: the seccomp profile is invalid: defaultAction is "DENY"`},
		{"one that is too large", "large.json", "larger than"},
		{"a way out", "../outside.json", "path escapes"},
		{"a link out", "link.json", "path escapes"},
		{"an absolute path", filepath.Join(top, "outside.json"), "path escapes"},
		{"a pipe without a writer", "pipe", "no regular file"},
		{"a directory", "team", "no regular file"},
		{"nothing", "", ""},
	} {
		_, err := Load(dir, tt.name)
		if tt.name == "" {
			if err == nil {
				t.Error("an empty name is a profile")
			}
			continue
		}
		if got := ""; err != nil {
			got = err.Error()
			if tt.want == "" || !strings.Contains(got, tt.want) {
				t.Errorf("%s: got %q, want %q", tt.reason, got, tt.want)
			}
		} else if tt.want != "" {
			t.Errorf("%s: no error, want %q", tt.reason, tt.want)
		}
	}
	if _, err := Load(filepath.Join(top, "none"), "a.json"); err == nil || !strings.Contains(err.Error(), "put it into") {
		t.Errorf("a missing directory: %v", err)
	}
}

// TestSelectErrors names the field of a securityContext.
func TestSelectErrors(t *testing.T) {
	t.Parallel()
	empty, missing := "", "missing.json"
	for _, tt := range []struct {
		asked corev1.SeccompProfile
		want  string
	}{
		{corev1.SeccompProfile{Type: "Strict"}, `securityContext.seccompProfile.type is "Strict"`},
		{corev1.SeccompProfile{}, `securityContext.seccompProfile.type is ""`},
		{corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost}, "securityContext.seccompProfile.localhostProfile is missing"},
		{corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: &empty}, "securityContext.seccompProfile.localhostProfile is missing"},
		{corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: &missing}, "cannot find the seccomp profile missing.json"},
	} {
		if _, _, err := Select(&tt.asked, t.TempDir(), machines[0]); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", tt.asked, err, tt.want)
		}
	}
	if p, _, err := Select(&corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}, "", machines[0]); p != nil || err != nil {
		t.Errorf("Unconfined has a program %v, %v", p, err)
	}
}

// TestSelectLocalhost compiles a file.
func TestSelectLocalhost(t *testing.T) {
	t.Parallel()
	dir, name := t.TempDir(), "mine.json"
	text := `{"defaultAction": "SCMP_ACT_ALLOW", "owner": "me", "syscalls": [{"names": ["mkdir"], "action": "SCMP_ACT_ERRNO", "errnoRet": 13}]}`
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p, ignored, err := Select(&corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: &name}, dir, machines[0])
	if err != nil {
		t.Fatal(err)
	}
	if got := newVirtual(t, p).run(t, data{audit: amd64.audit, number: 83}); got != errno|13 {
		t.Errorf("mkdir gets %#x", got)
	}
	if len(ignored) != 1 {
		t.Errorf("complaints %q, want one", ignored)
	}
}

// FuzzParse holds the programs of whatever profile to the model.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 38, "architectures": ["SCMP_ARCH_X86"], "flags": ["SECCOMP_FILTER_FLAG_LOG"],
		"syscalls": [{"names": ["read", "socket", "clone"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 1, "value": 4294967296, "valueTwo": 3, "op": "SCMP_CMP_MASKED_EQ"}, {"index": 0, "value": 9, "op": "SCMP_CMP_GE"}]}]}`))
	f.Add([]byte(`{"defaultAction": "SCMP_ACT_LOG", "archMap": [{"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": ["SCMP_ARCH_ARM"]}],
		"syscalls": [{"name": "cacheflush", "action": "SCMP_ACT_KILL", "includes": {"caps": ["CAP_BPF"], "minKernel": "4.8"}, "excludes": {"arches": ["s390"]}}, {"names": ["socket"], "action": "SCMP_ACT_TRAP", "args": [{"value": 1, "op": "SCMP_CMP_NE"}, {"value": 7, "op": "SCMP_CMP_LT"}]}]}`))
	all := numbers()
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		for _, m := range machines {
			m.Capabilities = []string{"CAP_BPF"}
			resolved, err := p.Resolve(m)
			if err != nil {
				t.Fatalf("parsed, but not resolved: %v", err)
			}
			program, err := Compile(resolved, m)
			if err != nil {
				if strings.Contains(err.Error(), "instructions") {
					continue
				}
				t.Fatalf("parsed, but not compiled: %v", err)
			}
			v, want := newVirtual(t, program), newModel(resolved, m.Arch)
			for _, a := range audits(m) {
				for i := 0; i < len(all); i += 7 {
					d := data{audit: a.audit, number: all[i], args: [arguments]uint64{uint64(i), 1, math.MaxUint64}}
					if got, want := v.run(t, d), want.run(d); got != want {
						t.Fatalf("%s, syscall %d of %s: got %#x, want %#x", m.Arch, d.number, a.name, got, want)
					}
				}
			}
		}
	})
}
