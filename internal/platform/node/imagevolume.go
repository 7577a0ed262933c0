// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/platform/node/imagepull"
	"diwan.dev/diwan/internal/platform/node/volume"
)

// imageVolume provides the image of a volume, by the rules for containers' images.
func (n *Node) imageVolume(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) (*volume.Image, error) {
	failed := func(err error) error {
		return &volume.PendingError{Message: fmt.Sprintf("MountVolume.SetUp failed for volume %q : %v", v.Name, err)}
	}
	w := n.workerOf(pod)
	if w == nil {
		return nil, failed(errors.New("its Pod is gone"))
	}
	if n.cfg.NoImages != nil {
		return nil, failed(n.cfg.NoImages)
	}
	found, err := n.cfg.Puller.Image(ctx, imagepull.Request{
		Image: v.Image.Reference, Policy: v.Image.PullPolicy, Pod: string(pod.UID),
		Secrets: func(ctx context.Context) ([]corev1.Secret, error) { return w.pullSecrets(ctx, pod) },
		Event:   w.tell,
	})
	if cause := (*imagepull.Error)(nil); errors.As(err, &cause) {
		return nil, failed(fmt.Errorf("%s: %w", cause.Reason, err))
	}
	if err != nil {
		return nil, err
	}
	layers := found.Dirs()
	slices.Reverse(layers)
	return &volume.Image{ID: found.ID(), Layers: layers}, nil
}

// workerOf is the worker of a Pod, nil if there is none.
func (n *Node) workerOf(pod *corev1.Pod) *worker {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.workers[pod.UID]
}
