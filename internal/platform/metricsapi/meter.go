// SPDX-License-Identifier: Apache-2.0

package metricsapi

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"diwan.dev/diwan/internal/platform/node/server"
)

// Source is a node whose use is measured.
type Source interface {
	// Pods returns the Pods of the node; the caller does not change them.
	Pods() []*corev1.Pod
	// Usage returns what the containers have used.
	Usage(ctx context.Context) ([]server.Usage, error)
}

const (
	// fresh is how long a reading is given to further requests, and the least time
	// between two measurements.
	fresh = time.Second
	// stale is the age from which a measurement says nothing of the present.
	stale = time.Minute
)

// Meter measures a node's use.
type Meter struct {
	node   string
	source Source

	mu   sync.Mutex
	last *measurement
	now  *reading
}

// NewMeter returns a meter of the node of that name.
func NewMeter(node string, source Source) *Meter { return &Meter{node: node, source: source} }

// key names a container.
type key struct{ namespace, pod, container string }

// measurement is what everything has used up to a time.
type measurement struct {
	at         time.Time
	containers map[key]server.Usage
	machine    server.Usage
}

// reading is what everything uses.
type reading struct {
	at         time.Time
	window     time.Duration
	containers map[key]corev1.ResourceList
	machine    corev1.ResourceList
}

// read returns a reading that is fresh.
func (m *Meter) read(ctx context.Context) (*reading, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now != nil && time.Since(m.now.at) < fresh {
		return m.now, nil
	}
	if m.last == nil || time.Since(m.last.at) > stale {
		first, err := m.measure(ctx)
		if err != nil {
			return nil, err
		}
		m.last = first
	}
	pause := time.NewTimer(fresh - time.Since(m.last.at))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	second, err := m.measure(ctx)
	if err != nil {
		return nil, err
	}
	m.now, m.last = between(m.last, second), second
	return m.now, nil
}

func (m *Meter) measure(ctx context.Context) (*measurement, error) {
	all, err := m.source.Usage(ctx)
	if err != nil {
		return nil, err
	}
	now := &measurement{at: time.Now(), containers: map[key]server.Usage{}}
	for _, u := range all {
		now.containers[key{u.Namespace, u.Pod, u.Container}] = u
	}
	now.machine.CPU, now.machine.Memory = server.Machine()
	return now, nil
}

// between is the use between two measurements. Of a container that started in
// between the rate is that since its start.
func between(first, second *measurement) *reading {
	window := second.at.Sub(first.at)
	r := &reading{at: second.at, window: window, containers: map[key]corev1.ResourceList{}}
	r.machine = use(second.machine.CPU-first.machine.CPU, window, second.machine.Memory)
	for k, u := range second.containers {
		if before, ok := first.containers[k]; ok && before.PodUID == u.PodUID && before.Started.Equal(u.Started) {
			r.containers[k] = use(u.CPU-before.CPU, window, u.Memory)
			continue
		}
		r.containers[k] = use(u.CPU, second.at.Sub(u.Started), u.Memory)
	}
	return r
}

// use is CPU time in a window as cores, and memory. Time that goes back, as
// when a process that was counted is gone, is none.
func use(cpu, window time.Duration, memory uint64) corev1.ResourceList {
	nanocores := int64(0)
	if cpu > 0 && window > 0 {
		nanocores = int64(float64(cpu) / float64(window) * 1e9)
	}
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewScaledQuantity(nanocores, resource.Nano),
		corev1.ResourceMemory: *resource.NewQuantity(int64(memory), resource.BinarySI),
	}
}
