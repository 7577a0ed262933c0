// SPDX-License-Identifier: Apache-2.0

package node

import (
	"maps"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/image"
	"diwan.dev/diwan/internal/platform/node/network"
	"diwan.dev/diwan/internal/platform/node/rootless"
)

// Decorator adapts containers before they start, for example by adding a program that
// their image has on a cluster.
type Decorator interface {
	// Programs returns the names of the programs that would be added to a container with
	// an image. Empty: the container is left alone.
	Programs(pod *corev1.Pod, c *corev1.Container, img *image.Environment) []string
	// Decorate adapts a container for which Programs is not empty.
	Decorate(*Decoration) error
}

// Decoration is a container that is about to start.
type Decoration struct {
	Pod       *corev1.Pod
	Container *corev1.Container

	// Args are the program and its arguments, Mounts the files that the container sees.
	// Decorate may change both.
	Args   []string
	Mounts []container.Mount
	// Env are additional environment variables, and PathDirs directories to prepend to
	// PATH.
	Env      map[string]string
	PathDirs []string

	// Self is this binary, and Dir a directory for the decorator's files.
	Self, Dir string
	// Root means that Mounts appear at their targets even where only root may write.
	// Otherwise programs must use the sources.
	Root bool
	// Hosts is the Pod's hosts file, and Address its address, if it shares the machine's
	// network; otherwise "".
	Hosts, Address string
}

// decorate applies the decorators to a container, and returns the image with the
// directories that they add to its PATH.
func (w *worker) decorate(pod *corev1.Pod, c *corev1.Container, spec *container.Spec, env *environment, s *setting, sandbox network.Sandbox) (*image.Environment, error) {
	cfg, img := &w.node.cfg, s.img
	for _, decorator := range cfg.Decorators {
		if cfg.Self == "" || len(decorator.Programs(pod, c, img)) == 0 {
			continue
		}
		d := &Decoration{
			Pod: pod, Container: c, Args: spec.Args, Mounts: spec.Mounts, Env: map[string]string{},
			Self: cfg.Self, Dir: filepath.Join(cfg.Dir, "decorators"), Root: s.runtime.Mounts() && rootless.Root(),
		}
		if sandbox.NetnsPath == "" {
			d.Hosts, d.Address = w.node.podPath(pod, "hosts"), sandbox.Bind.String()
		}
		if err := decorator.Decorate(d); err != nil {
			return img, err
		}
		spec.Args, spec.Mounts = d.Args, d.Mounts
		maps.Copy(env.services, d.Env)
		with := *img
		with.PathDirs = append(d.PathDirs, img.PathDirs...)
		img = &with
	}
	return img, nil
}
