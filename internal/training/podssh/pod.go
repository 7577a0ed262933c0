// SPDX-License-Identifier: Apache-2.0

package podssh

import (
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/training/sshkey"
)

// Variables that configure the programs.
const (
	// EnvKeys is the directory of the keys. Required.
	EnvKeys = "DIWAN_SSH_KEYS"
	// EnvHosts is a hosts file that counts before the system's. Default: none.
	EnvHosts = "DIWAN_SSH_HOSTS"
	// EnvAddress is where sshd listens. Default: all addresses.
	EnvAddress = "DIWAN_SSH_ADDRESS"
)

// Wants returns where a container of a Pod mounts keys for ssh, "" where it does
// not: it is then one that needs ssh or sshd.
func Wants(pod *corev1.Pod, c *corev1.Container) string {
	for _, m := range c.VolumeMounts {
		i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if i >= 0 && holdsKeys(&pod.Spec.Volumes[i]) && m.SubPath == "" && m.SubPathExpr == "" {
			return filepath.Join("/", m.MountPath)
		}
	}
	return ""
}

// holdsKeys reports whether a volume is a Secret with a private key for ssh in the
// file in which ssh looks for it.
func holdsKeys(v *corev1.Volume) bool {
	return v.Secret != nil && slices.ContainsFunc(v.Secret.Items, func(item corev1.KeyToPath) bool {
		return item.Key == sshkey.Private && item.Path == sshkey.PrivateFile
	})
}

// Programs are the names of what Main can be.
func Programs() []string { return []string{"ssh", "sshd"} }

// Replace returns a command with the programs' paths in images replaced by those
// in a directory.
func Replace(command []string, dir string) []string {
	out := slices.Clone(command)
	for i, word := range out {
		switch word {
		case "/usr/sbin/sshd", "/usr/bin/sshd", "/usr/bin/ssh":
			out[i] = filepath.Join(dir, filepath.Base(word))
		}
	}
	return out
}
