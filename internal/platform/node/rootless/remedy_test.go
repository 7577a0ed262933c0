// SPDX-License-Identifier: Apache-2.0

package rootless

import (
	"strings"
	"testing"
)

func TestRemedy(t *testing.T) {
	t.Parallel()
	const (
		apparmor = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
		clone    = "/proc/sys/kernel/unprivileged_userns_clone"
		most     = "/proc/sys/user/max_user_namespaces"
	)
	for _, tt := range []struct {
		reason string
		files  map[string]string
		want   string
	}{
		{"Ubuntu since 23.10", map[string]string{apparmor: "1", clone: "1", most: "1000"}, "kernel.apparmor_restrict_unprivileged_userns=0"},
		{"older Debian, hardened Arch", map[string]string{clone: "0", most: "1000"}, "kernel.unprivileged_userns_clone=1"},
		{"older Red Hat", map[string]string{most: "0"}, "user.max_user_namespaces=15000"},
		{"all is allowed: it is a container's seccomp", map[string]string{apparmor: "0", clone: "1", most: "1000"}, "seccomp"},
		{"no such settings", nil, "seccomp"},
	} {
		if got := remedy(func(path string) string { return tt.files[path] }); !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want the words %q", tt.reason, got, tt.want)
		}
	}
}
