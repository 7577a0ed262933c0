// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// members are the Pods of a group. Those that are being deleted are left out.
type members struct {
	bound   []*corev1.Pod // have a node
	free    []*corev1.Pod // have none, though some may hold a place
	held    int           // of the free, those that hold a place
	nowhere []types.UID   // of the free, those that found no node when they were tried last
	running int           // of the bound, those that run
	// succeeded and failed Pods have no place any more.
	succeeded, failed int
}

// placed reports whether the group was placed: then it is no gang any more.
func (m members) placed() bool { return len(m.bound) > 0 }

// there is how many members the group has, those included that are done.
func (m members) there() int { return len(m.bound) + len(m.free) + m.succeeded }

// latest returns when the youngest of the unfinished members was created, or since if none
// was created later.
func (m members) latest(since time.Time) time.Time {
	for _, pods := range [][]*corev1.Pod{m.bound, m.free} {
		for _, pod := range pods {
			if created := pod.CreationTimestamp.Time; created.After(since) {
				since = created
			}
		}
	}
	return since
}

// waitsFor says for what Pods a group waits before any is tried, "" if for none.
func (g Group) waitsFor(m members) string {
	if m.placed() || m.there() >= g.Min {
		return ""
	}
	return fmt.Sprintf("%s has %d of the %d Pods that it needs", g.Key, m.there(), g.Min)
}

// lacksNode reports whether a group needs, in addition to a Pod to be tried, some
// that found no node. These are retried when something changes for them.
func (g Group) lacksNode(m members, pod types.UID) bool {
	nowhere := len(m.nowhere)
	if slices.Contains(m.nowhere, pod) {
		nowhere--
	}
	return !m.placed() && nowhere > 0 && m.there()-nowhere < g.Min
}

// fits returns what a group lacks to be placed now, "" if nothing. It is
// hopeless if the nodes would not suffice even if they were empty.
func (g Group) fits(m members, r room) (lack string, hopeless bool) {
	if m.placed() {
		return "", false
	}
	need := least(m.free, g.Min-m.succeeded)
	for name, value := range g.Resources {
		need[name] = max(need[name], value)
	}
	if lack := r.all.lacking(need); lack != "" {
		return fmt.Sprintf("%s can never fit on the nodes: its %d Pods need %s", g.Key, g.Min, lack), true
	}
	if lack := r.free.lacking(need); lack != "" {
		return fmt.Sprintf("%s does not fit on the free resources: its %d Pods need %s", g.Key, g.Min, lack), false
	}
	return "", false
}

// whole reports whether the required number of Pods hold a place.
func (g Group) whole(m members) bool { return m.placed() || m.held+m.succeeded >= g.Min }
