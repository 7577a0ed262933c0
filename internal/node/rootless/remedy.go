// SPDX-License-Identifier: Apache-2.0

package rootless

// remedy says what allows user namespaces on a system, from the files of its
// settings; read returns "" for one that is not there.
func remedy(read func(path string) string) string {
	switch {
	case read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "AppArmor takes their rights away; allow them to diwan by a profile, as docs/running-on-your-laptop.md shows, or to all programs by sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	case read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return "allow them by sudo sysctl -w kernel.unprivileged_userns_clone=1"
	case read("/proc/sys/user/max_user_namespaces") == "0":
		return "allow them by sudo sysctl -w user.max_user_namespaces=15000"
	}
	return "in a container, allow them in its seccomp profile, or run diwan as root there"
}
