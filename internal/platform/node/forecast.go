// SPDX-License-Identifier: Apache-2.0

package node

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/internal/platform/node/image"
	"diwan.dev/diwan/internal/platform/node/process"
)

// Forecast predicts what this machine's node would do with a container, using
// the node's own decisions, before there is a Pod.
type Forecast struct {
	images     image.Resolver
	passed     map[string]string
	decorators []Decorator
}

// NewForecast is for a node with images and decorators that was started with the
// variables of environ, as NAME=VALUE.
func NewForecast(images image.Resolver, environ []string, decorators ...Decorator) *Forecast {
	return &Forecast{images: images, passed: passed(environ, DefaultConfig("").PassEnv), decorators: decorators}
}

// Start is how a container would be started, as far as its manifest
// determines it.
type Start struct {
	// Args are the program and its arguments.
	Args []string
	// Dir is the working directory; "" for one that the node makes.
	Dir string

	env     []string
	mounts  map[string]string // path in the container to path on this machine
	volumes []string          // paths in the container whose content is not known
}

// Container predicts the start of a Pod's container. The error says what this
// machine lacks for it. Of a container that runs in its image nothing is known.
func (f *Forecast) Container(pod *corev1.Pod, c *corev1.Container) (*Start, error) {
	if placeOf(ptr.Deref(pod.Spec.RuntimeClassName, ""), f.images.Entry(c.Image)).runtime == image.RuntimeImage {
		return &Start{}, nil // it has what its image has
	}
	img, err := resolveImage(f.images, c)
	if err != nil {
		return nil, err
	}
	if err := img.Check(); err != nil {
		return nil, err
	}
	env := &environment{services: map[string]string{}, declared: map[string]string{}}
	for _, v := range c.Env {
		if v.ValueFrom == nil {
			env.declared[v.Name] = expansion.Expand(v.Value, expansion.MappingFuncFor(env.declared))
		}
	}
	s := &Start{Args: argsOf(c, img, env.expand), Dir: namedDir(pod, c, img), mounts: maps.Clone(img.Mounts), env: env.list(f.passed, img)}
	for _, m := range c.VolumeMounts {
		s.volumes = append(s.volumes, filepath.Join("/", m.MountPath))
	}
	if len(s.Args) == 0 || !img.Ready() {
		return s, nil
	}
	for _, decorator := range f.decorators {
		if slices.Contains(decorator.Programs(pod, c, img), filepath.Base(s.Args[0])) {
			return s, nil
		}
	}
	return s, s.find(s.Args[0])
}

// find reports that a program is missing, where that can be known.
func (s *Start) find(program string) error {
	if strings.Contains(program, "/") {
		path, known := s.Path(program)
		if !known {
			return nil
		}
		program = path
	}
	if strings.Contains(program, "$(") {
		return nil // a variable whose value comes from an object
	}
	_, err := process.Find(program, s.Dir, s.env)
	return err
}

// Path is where a path of the container is on this machine. It is not known below
// a volume, of a working directory that the node makes, or with a variable in it.
func (s *Start) Path(path string) (host string, known bool) {
	if !filepath.IsAbs(path) {
		if s.Dir == "" {
			return "", false
		}
		path = filepath.Join(s.Dir, path)
	}
	path = filepath.Clean(path)
	if strings.Contains(path, "$(") || slices.ContainsFunc(s.volumes, func(v string) bool { return below(path, v) }) {
		return "", false
	}
	longest := ""
	for target := range s.mounts {
		if target = filepath.Clean(target); below(path, target) && len(target) > len(longest) {
			longest = target
		}
	}
	if longest != "" {
		for target, source := range s.mounts {
			if filepath.Clean(target) == longest {
				return filepath.Join(source, strings.TrimPrefix(path, longest)), true
			}
		}
	}
	return path, true
}

// below reports whether a path is a directory or within it.
func below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
