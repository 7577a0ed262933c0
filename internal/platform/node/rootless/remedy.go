// SPDX-License-Identifier: Apache-2.0

package rootless

// remedy returns how to allow user namespaces on a system, from its settings
// files; read returns "" for a missing one.
func remedy(read func(path string) string) string {
	switch {
	case read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "AppArmor restricts them; allow them for diwan with a profile, as docs/running-on-your-laptop.md shows, or for all programs with sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	case read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return "allow them with sudo sysctl -w kernel.unprivileged_userns_clone=1"
	case read("/proc/sys/user/max_user_namespaces") == "0":
		return "allow them with sudo sysctl -w user.max_user_namespaces=15000"
	}
	return "in a container, allow them in its seccomp profile, or run diwan as root there"
}
