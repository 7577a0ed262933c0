// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/image"
)

// place is where a container runs, and why there.
type place struct {
	runtime string // image.RuntimeProcess or image.RuntimeImage
	why     string
	unsaid  bool // nothing says where: it is the default
}

// placeOf decides where a container runs, by its manifest and the home's image table
// alone: the same manifest runs in the same place whether or not the network is up.
// handler is that of the Pod's RuntimeClass, "" without one; entry is the table's for
// the image, nil without one.
func placeOf(handler string, entry *image.Entry) place {
	switch {
	case handler != "":
		return place{runtime: handler, why: "the Pod's RuntimeClass says so"}
	case entry == nil:
		return place{runtime: image.RuntimeImage, why: "the image table does not map it", unsaid: true}
	case entry.Runtime == image.RuntimeImage:
		return place{runtime: image.RuntimeImage, why: fmt.Sprintf("the entry %s of the image table says so", entry.Image)}
	}
	return place{runtime: image.RuntimeProcess, why: fmt.Sprintf("the entry %s of the image table maps it", entry.Image)}
}

// String says it in words.
func (p place) String() string {
	if p.runtime == image.RuntimeImage {
		return "in its image: " + p.why
	}
	return "as a process of this machine: " + p.why
}

// orProcess adds to an error of a container that is in its image by default how to run it as a
// process.
func (p place) orProcess(name string, err error) error {
	if !p.unsaid {
		return err
	}
	return fmt.Errorf("%w\n(to run the container's command with this machine's programs: diwan images map %s --runtime process, or runtimeClassName: process)", err, name)
}

// handlerOf finds the handler of a Pod's RuntimeClass; "" without one.
func (n *Node) handlerOf(ctx context.Context, pod *corev1.Pod) (string, error) {
	if pod.Spec.RuntimeClassName == nil {
		return "", nil
	}
	class := *pod.Spec.RuntimeClassName
	known, ok := n.classes.known.Load(class)
	if !ok {
		found, err := n.classes.find(ctx, class)
		if err != nil {
			return "", fmt.Errorf("cannot find the runtime of class %q: %w", class, err)
		}
		n.classes.known.Store(class, found)
		known = found
	}
	handler := known.(string)
	if handler != image.RuntimeProcess && handler != image.RuntimeImage {
		return "", fmt.Errorf("cannot run the Pod: this node has no runtime %q; it has %q and %q", handler, image.RuntimeImage, image.RuntimeProcess)
	}
	return handler, nil
}

// runtimeOf is the runtime for a place.
func (n *Node) runtimeOf(p place) (container.Runtime, error) {
	if r := n.cfg.Runtimes[p.runtime]; r != nil {
		return r, nil
	}
	why := n.cfg.NoImages
	if why == nil {
		why = errors.New("this node has no runtime for it")
	}
	return nil, fmt.Errorf("the container is to run %s; but %w", p, why)
}

// The schemes of container IDs.
const (
	processScheme = "process://"
	imageScheme   = "image://"
)

// containerID is a run's ID as a status shows it.
func containerID(spec container.Spec) string {
	if spec.Root != nil {
		return imageScheme + spec.ID.String()
	}
	return processScheme + spec.ID.String()
}

// sameRun reports whether a status' container ID is that of a run.
func sameRun(id string, run container.ID) bool {
	_, rest, _ := strings.Cut(id, "://")
	return rest == run.String()
}
