// SPDX-License-Identifier: Apache-2.0

package node

import (
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/node/container"
	"diwan.dev/diwan/internal/node/image"
	"diwan.dev/diwan/internal/node/network"
	"diwan.dev/diwan/internal/node/rootless"
	"diwan.dev/diwan/internal/podssh"
)

// sshPrograms is where containers that may have another user find ssh and sshd.
const sshPrograms = "/run/diwan/ssh"

// imageSSHD is where images have sshd.
const imageSSHD = "/usr/sbin/sshd"

// giveSSH puts ssh and sshd, which are this binary, into a container that mounts
// keys for them, before those that the machine may have. It returns the image
// with their directory in its PATH. An image that is mapped to an sshd of its own
// keeps that, and the ssh beside it.
func (w *worker) giveSSH(pod *corev1.Pod, c *corev1.Container, spec *container.Spec, env *environment, img *image.Environment, sandbox network.Sandbox) (*image.Environment, error) {
	self, keys := w.node.cfg.Self, podssh.Wants(pod, c)
	if _, own := img.Mounts[imageSSHD]; self == "" || keys == "" || own {
		return img, nil
	}
	programs := filepath.Join(w.node.cfg.Dir, "ssh")
	if w.runtime.Mounts() && rootless.Root() {
		programs = sshPrograms
		for _, name := range podssh.Programs() {
			spec.Mounts = append(spec.Mounts, container.Mount{Source: self, Target: filepath.Join(programs, name), ReadOnly: true})
		}
	} else {
		for _, name := range podssh.Programs() {
			if err := image.Link(self, filepath.Join(programs, name)); err != nil {
				return img, err
			}
		}
		i := slices.IndexFunc(spec.Mounts, func(m container.Mount) bool { return m.Target == keys })
		keys = spec.Mounts[i].Source
	}
	env.services[podssh.EnvKeys] = keys
	if sandbox.NetnsPath == "" {
		env.services[podssh.EnvHosts] = w.node.podPath(pod, "hosts")
		env.services[podssh.EnvAddress] = sandbox.Bind.String()
	}
	spec.Args = podssh.Replace(spec.Args, programs)
	with := *img
	with.PathDirs = append([]string{programs}, img.PathDirs...)
	return &with, nil
}
