// SPDX-License-Identifier: Apache-2.0

// Package nodedecorator has a laptop's node give ssh and sshd, which are this binary,
// to containers that mount keys for them.
package nodedecorator

import (
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/platform/node"
	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/image"
	"diwan.dev/diwan/internal/training/podssh"
)

// programs is where containers that may have another user find ssh and sshd.
const programs = "/run/diwan/ssh"

// imageSSHD is where images have sshd.
const imageSSHD = "/usr/sbin/sshd"

// SSH is a [node.Decorator]. An image that is mapped to an sshd of its own keeps
// that, and the ssh beside it.
type SSH struct{}

// Programs implements [node.Decorator].
func (SSH) Programs(pod *corev1.Pod, c *corev1.Container, img *image.Environment) []string {
	if _, own := img.Mounts[imageSSHD]; own || podssh.Wants(pod, c) == "" {
		return nil
	}
	return podssh.Programs()
}

// Decorate implements [node.Decorator]: the programs come before those that the
// machine may have.
func (SSH) Decorate(d *node.Decoration) error {
	keys := podssh.Wants(d.Pod, d.Container)
	dir := filepath.Join(d.Dir, "ssh")
	if d.Root {
		dir = programs
		for _, name := range podssh.Programs() {
			d.Mounts = append(d.Mounts, container.Mount{Source: d.Self, Target: filepath.Join(dir, name), ReadOnly: true})
		}
	} else {
		for _, name := range podssh.Programs() {
			if err := image.Link(d.Self, filepath.Join(dir, name)); err != nil {
				return err
			}
		}
		i := slices.IndexFunc(d.Mounts, func(m container.Mount) bool { return m.Target == keys })
		keys = d.Mounts[i].Source
	}
	d.Env[podssh.EnvKeys] = keys
	if d.Address != "" {
		d.Env[podssh.EnvHosts], d.Env[podssh.EnvAddress] = d.Hosts, d.Address
	}
	d.Args = podssh.Replace(d.Args, dir)
	d.PathDirs = append(d.PathDirs, dir)
	return nil
}
