// SPDX-License-Identifier: Apache-2.0

package node

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/internal/platform/node/capability"
)

func TestSecurityOf(t *testing.T) {
	t.Parallel()
	none, err := capability.Default().Apply(nil, []string{"ALL"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name       string
		context    *corev1.SecurityContext
		privileged bool // is allowed
		caps       capability.Set
		filtered   bool
		masked     bool
		wrong      string
	}{
		{name: "nothing asked", caps: capability.Default(), filtered: true, masked: true},
		{name: "all dropped", context: &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}, caps: none, filtered: true, masked: true},
		{name: "unconfined", context: &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}, caps: capability.Default(), masked: true},
		{name: "unmasked", context: &corev1.SecurityContext{ProcMount: ptr.To(corev1.UnmaskedProcMount)}, caps: capability.Default(), filtered: true},
		{name: "privileged", context: &corev1.SecurityContext{Privileged: ptr.To(true)}, wrong: "securityContext.privileged of container main is refused"},
		{name: "privileged, allowed", context: &corev1.SecurityContext{Privileged: ptr.To(true)}, privileged: true, caps: capability.All},
		{name: "no such capability", context: &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"FLY"}}}, wrong: "securityContext.capabilities.add"},
		{name: "no such profile", context: &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: ptr.To("none.json")}}, wrong: "none.json"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := &corev1.Container{Name: "main", Image: "acme/train", SecurityContext: tc.context}
			s, complaints, err := securityOf(&corev1.Pod{}, c, tc.privileged, t.TempDir())
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Fatalf("the error is %v, want one with %q", err, tc.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if s.Capabilities != tc.caps || (len(s.Seccomp) > 0) != tc.filtered || (len(s.Masked) > 0) != tc.masked || s.Privileged != tc.privileged {
				t.Errorf("it may %+v, complaints %v", s, complaints)
			}
		})
	}
}

func TestSeccompProfileOfThePod(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}}}
	s, _, err := securityOf(pod, &corev1.Container{}, false, "")
	if err != nil || len(s.Seccomp) > 0 {
		t.Errorf("the Pod's profile does not count: %v", err)
	}
	own := &corev1.Container{SecurityContext: &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}}
	if s, _, err = securityOf(pod, own, false, ""); err != nil || len(s.Seccomp) == 0 {
		t.Errorf("the container's profile does not override the Pod's: %v", err)
	}
}

func TestSysctls(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name        string
		list        []corev1.Sysctl
		hostNetwork bool
		want        map[string]string
		wrong       string
	}{
		{name: "none", want: map[string]string{"net.ipv4.ip_unprivileged_port_start": "0"}},
		{name: "none, on the host's network", hostNetwork: true, want: map[string]string{}},
		{name: "safe", list: []corev1.Sysctl{{Name: "kernel/shm_rmid_forced", Value: "1"}}, want: map[string]string{"net.ipv4.ip_unprivileged_port_start": "0", "kernel.shm_rmid_forced": "1"}},
		{name: "overridden", list: []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "1024"}}, want: map[string]string{"net.ipv4.ip_unprivileged_port_start": "1024"}},
		{name: "unsafe", list: []corev1.Sysctl{{Name: "kernel.core_pattern", Value: "|/bin/sh"}}, wrong: "SysctlForbidden"},
		{name: "a climbing name", list: []corev1.Sysctl{{Name: "net.ipv4/../../kernel/core_pattern", Value: "x"}}, wrong: "SysctlForbidden"},
		{name: "of the host", list: []corev1.Sysctl{{Name: "net.ipv4.tcp_syncookies", Value: "1"}}, hostNetwork: true, wrong: "hostNetwork"},
		{name: "two lines", list: []corev1.Sysctl{{Name: "net.ipv4.tcp_syncookies", Value: "1\n2"}}, wrong: "line break"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{Spec: corev1.PodSpec{HostNetwork: tc.hostNetwork, SecurityContext: &corev1.PodSecurityContext{Sysctls: tc.list}}}
			got, err := sysctlsOf(pod)
			switch {
			case tc.wrong != "":
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Errorf("the error is %v, want one with %q", err, tc.wrong)
				}
			case err != nil || len(got) != len(tc.want):
				t.Errorf("sysctls %v, %v; want %v", got, err, tc.want)
			}
			for name, value := range tc.want {
				if got[name] != value {
					t.Errorf("%s is %q, want %q", name, got[name], value)
				}
			}
		})
	}
}

func TestIgnored(t *testing.T) {
	t.Parallel()
	c := &corev1.Container{SecurityContext: &corev1.SecurityContext{ReadOnlyRootFilesystem: ptr.To(true)}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{HostPID: true, ShareProcessNamespace: ptr.To(true)}}
	if got := strings.Join(ignored(pod, c, false), "\n"); !strings.Contains(got, "readOnlyRootFilesystem") || strings.Contains(got, "hostPID") {
		t.Errorf("as a process it ignores %s", got)
	}
	if got := strings.Join(ignored(pod, c, true), "\n"); strings.Contains(got, "readOnlyRootFilesystem") || strings.Contains(got, "hostPID") || strings.Contains(got, "shareProcessNamespace") {
		t.Errorf("in an image it ignores %s", got)
	}
	if err := refused(pod); err == nil || !strings.Contains(err.Error(), "hostPID is refused") {
		t.Errorf("a Pod that wants the machine's processes: %v", err)
	}
	pod.Spec.HostPID = false
	if err := refused(pod); err != nil {
		t.Error(err)
	}
}
