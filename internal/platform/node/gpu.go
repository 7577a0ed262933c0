// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

const gpuResource = corev1.ResourceName("nvidia.com/gpu")

// gpus hands out whole devices: a container sees those in CUDA_VISIBLE_DEVICES.
type gpus struct {
	mu    sync.Mutex
	free  []string
	taken map[string]map[string][]string // by Pod and container
}

// take gives a container as many devices as it asks for, the same ones for each
// run, and returns their indices with commas between.
func (g *gpus) take(pod string, c *corev1.Container) (string, error) {
	limit := c.Resources.Limits[gpuResource]
	want := int(limit.Value())
	if want == 0 {
		return "", nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if has := g.taken[pod][c.Name]; has != nil {
		return strings.Join(has, ","), nil
	}
	if want > len(g.free) {
		return "", fmt.Errorf("cannot give container %s %d GPUs: %d are free", c.Name, want, len(g.free))
	}
	if g.taken == nil {
		g.taken = map[string]map[string][]string{}
	}
	if g.taken[pod] == nil {
		g.taken[pod] = map[string][]string{}
	}
	g.taken[pod][c.Name] = g.free[:want:want]
	g.free = g.free[want:]
	return strings.Join(g.taken[pod][c.Name], ","), nil
}

// keep records devices that a run of an earlier node uses.
func (g *gpus) keep(pod, name string, env []string) {
	for _, v := range env {
		list, ok := strings.CutPrefix(v, "CUDA_VISIBLE_DEVICES=")
		if !ok || list == "" {
			continue
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		used := map[string]bool{}
		for d := range strings.SplitSeq(list, ",") {
			used[d] = true
		}
		var mine, free []string
		for _, d := range g.free {
			if used[d] {
				mine = append(mine, d)
			} else {
				free = append(free, d)
			}
		}
		if mine == nil {
			return
		}
		if g.taken == nil {
			g.taken = map[string]map[string][]string{}
		}
		if g.taken[pod] == nil {
			g.taken[pod] = map[string][]string{}
		}
		g.taken[pod][name], g.free = mine, free
		return
	}
}

// release takes back the devices of a Pod.
func (g *gpus) release(pod string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, devices := range g.taken[pod] {
		g.free = append(g.free, devices...)
	}
	delete(g.taken, pod)
}
