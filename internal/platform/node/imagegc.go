// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"

	"diwan.dev/diwan/internal/platform/imagestore"
)

// imageMinAge protects an image that was just pulled or looked up, since its
// container may be about to start: a kubelet's minimum age.
const imageMinAge = 2 * time.Minute

// watchImages removes images that no container needs: those that were not used for
// long, and the least recently used ones while there are too many.
func (n *Node) watchImages(ctx context.Context) {
	if n.cfg.Puller == nil {
		return
	}
	tick := time.NewTicker(n.cfg.ImageCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		pruned, err := n.cfg.Puller.Store().Prune(ctx, n.imageBounds())
		switch {
		case ctx.Err() != nil:
		case err != nil:
			n.cfg.Log.Error(err, "cannot remove unused images; retrying")
		case len(pruned.Images) > 0:
			n.cfg.Log.Info("removed unused images", "images", pruned.Images, "bytes", pruned.Bytes)
		}
	}
}

// imageBounds says which images may go. A disk that is short needs all of them.
func (n *Node) imageBounds() imagestore.PruneOptions {
	high := n.cfg.ImageBytes
	if n.diskPressure() != "" {
		high = 1
	}
	return imagestore.PruneOptions{
		InUse: n.imagesInUse(), MinAge: imageMinAge, MaxAge: n.cfg.ImageAge,
		HighBytes: high, LowBytes: high / 10 * 9,
	}
}

// imagesInUse reports of an image whether a container of this node's Pods runs in it, or
// has it as a volume, or may again.
func (n *Node) imagesInUse() func(*imagestore.Image) bool {
	var used []string
	for _, w := range n.allWorkers() {
		w.mu.Lock()
		for _, c := range containersOf(w.pod) {
			used = append(used, c.Image)
		}
		for _, v := range w.pod.Spec.Volumes {
			if v.Image != nil {
				used = append(used, v.Image.Reference)
			}
		}
		for _, e := range w.containers {
			used = append(used, e.imageID)
			if e.run != nil { // its image, and its volumes', may have other names by now
				spec := e.run.Spec()
				used = append(used, spec.Images()...)
			}
		}
		uid := string(w.pod.UID)
		w.mu.Unlock()
		for _, image := range n.volumes.Images(uid) {
			used = append(used, image.ID)
		}
	}
	return func(i *imagestore.Image) bool {
		for _, name := range used {
			if name != "" && i.Is(name) {
				return true
			}
		}
		return false
	}
}
