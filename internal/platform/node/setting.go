// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/platform/imagestore"
	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/image"
	"diwan.dev/diwan/internal/platform/node/imagepull"
)

// setting is what a container runs in.
type setting struct {
	place   place
	runtime container.Runtime
	img     *image.Environment
	pulled  *pulled // nil for a process
}

// pulled is an image in the store.
type pulled struct {
	*imagestore.Image
	user string // by the image's configuration
	home string // of the container's user, known once that is
}

// setting finds what a container runs in, and provides it.
func (w *worker) setting(ctx context.Context, pod *corev1.Pod, c *corev1.Container, e *entry) (*setting, error) {
	cfg := &w.node.cfg
	s := &setting{place: placeOf(w.handler, cfg.Images.Entry(c.Image))}
	var err error
	if s.runtime, err = w.node.runtimeOf(s.place); err != nil {
		return nil, &waitError{reason: "CreateContainerConfigError", err: s.place.orProcess(c.Image, err)}
	}
	if s.place.runtime == image.RuntimeImage {
		return s, w.pull(ctx, pod, c, e, s)
	}
	if s.img, err = resolveImage(cfg.Images, c); err == nil {
		err = s.img.Prepare(ctx, func(line string) { cfg.Log.V(1).Info("preparing an image", "image", c.Image, "step", line) })
	}
	if err != nil {
		return nil, &waitError{reason: "ErrImagePull", err: err}
	}
	return s, nil
}

// pull provides a container's image.
func (w *worker) pull(ctx context.Context, pod *corev1.Pod, c *corev1.Container, e *entry, s *setting) error {
	found, err := w.node.cfg.Puller.Image(ctx, imagepull.Request{
		Image: c.Image, Policy: c.ImagePullPolicy, Pod: string(pod.UID),
		Secrets:  func(ctx context.Context) ([]corev1.Secret, error) { return w.pullSecrets(ctx, pod) },
		Event:    w.tell,
		Progress: w.progress(e, c.Image),
	})
	if err != nil {
		var cause *imagepull.Error
		if errors.As(err, &cause) {
			return &waitError{reason: cause.Reason, err: s.place.orProcess(c.Image, err), after: cause.Retry}
		}
		return err
	}
	file, err := found.Config()
	if err != nil {
		return &waitError{reason: "ImageInspectError", err: err}
	}
	config := file.Config
	s.pulled = &pulled{Image: found, user: config.User}
	s.img = &image.Environment{
		Image: c.Image, ID: found.ID(), Env: variables(config.Env),
		Command: config.Entrypoint, Args: config.Cmd, WorkingDir: cmp.Or(config.WorkingDir, "/"),
	}
	if len(argsOf(c, s.img, func(s string) string { return s })) == 0 {
		return &waitError{reason: "CreateContainerError", err: fmt.Errorf("image %s has neither an entrypoint nor a command, and the container sets none: set the container's command", c.Image)}
	}
	return nil
}

// pullSecrets reads a Pod's image pull secrets, those that exist.
func (w *worker) pullSecrets(ctx context.Context, pod *corev1.Pod) ([]corev1.Secret, error) {
	var list []corev1.Secret
	for _, ref := range pod.Spec.ImagePullSecrets {
		secret, err := w.node.objects.Secret(ctx, pod.Namespace, ref.Name)
		if err != nil {
			w.warn("FailedToRetrieveImagePullSecret", fmt.Sprintf("Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.", ref.Name))
			continue
		}
		list = append(list, *secret)
	}
	return list, nil
}

// progressInterval is how often a status says how far a pull is.
const progressInterval = 2 * time.Second

// progress shows in the container's status how far a pull is.
func (w *worker) progress(e *entry, name string) func(imagestore.Progress) {
	last := clock()
	return func(p imagestore.Progress) {
		if now := clock(); now.Sub(last) >= progressInterval {
			last = now
			w.change(func() {
				e.waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating", Message: fmt.Sprintf("Pulling image %q: %d of %d MB", name, p.Bytes/1e6, p.Total/1e6)}
			})
		}
	}
}

// variables are those of an image's configuration.
func variables(list []string) map[string]string {
	all := map[string]string{}
	for _, v := range list {
		name, value, _ := strings.Cut(v, "=")
		all[name] = value
	}
	return all
}

// defaults are the variables that a container in an image has unless the image or the
// container sets them.
func (p *pulled) defaults(hostname string) map[string]string {
	return map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": cmp.Or(p.home, "/"), "HOSTNAME": hostname,
	}
}
