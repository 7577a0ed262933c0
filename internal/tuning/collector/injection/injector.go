// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// mayTake is how long a look-up may take that can be done without.
const mayTake = 2 * time.Second

// Injector adds collectors to the Pods that get one.
type Injector struct {
	Config
	// Images looks up what images run.
	Images Images
}

// Images looks up the entrypoints of images.
type Images interface {
	// Entrypoint returns the entrypoint of the image of a Pod's container.
	Entrypoint(ctx context.Context, pod *corev1.Pod, container *corev1.Container) (*Entrypoint, error)
}

// Pod adds a collector to a trial's Pod at its creation, if its metrics are
// collected. An error says why the Pod cannot be created.
func (i *Injector) Pod(ctx context.Context, pod *corev1.Pod, trial *v1beta1.Trial) error {
	if trial.IsCompleted() || !Concerns(pod, trial) {
		return nil
	}
	var image *Entrypoint
	if c, must := LacksCommand(pod, trial); c != nil {
		if !must {
			soon, cancel := context.WithTimeout(ctx, mayTake)
			defer cancel()
			ctx = soon
		}
		var err error
		if image, err = i.Images.Entrypoint(ctx, pod, c); err != nil && must {
			return fmt.Errorf("cannot collect the output of container %s of trial %s: the manifest has no command for it, and the image's command cannot be read from the registry: %w; add the command to the manifest", c.Name, trial.Name, err)
		}
	}
	return Inject(pod, trial, i.Config, image)
}
