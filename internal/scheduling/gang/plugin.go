// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// Name is the plugin's name in a scheduler's profile.
const Name = "Gangs"

// plugin is the scheduler's view of the groups.
type plugin struct {
	groups *Groups
	handle fwk.Handle
}

var (
	_ fwk.QueueSortPlugin   = (*plugin)(nil)
	_ fwk.PreEnqueuePlugin  = (*plugin)(nil)
	_ fwk.EnqueueExtensions = (*plugin)(nil)
	_ fwk.PreFilterPlugin   = (*plugin)(nil)
	_ fwk.PostFilterPlugin  = (*plugin)(nil)
	_ fwk.ReservePlugin     = (*plugin)(nil)
	_ fwk.PermitPlugin      = (*plugin)(nil)
)

// Plugin makes the plugin for one of the scheduler's profiles.
func (g *Groups) Plugin(_ context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	return &plugin{g, handle}, nil
}

// Name implements fwk.Plugin.
func (p *plugin) Name() string { return Name }

// Less implements fwk.QueueSortPlugin: by priority, then by age, groups by their
// own, and the Pods of a group next to each other.
func (p *plugin) Less(a, b fwk.QueuedEntityInfo) bool { return p.place(a).before(p.place(b)) }

// place is a place in the queue.
type place struct {
	priority int32
	since    time.Time
	group    string
	queued   time.Time
}

// place is that of a Pod, or of a PodGroup of Kubernetes' own, which stands in the
// queue for its Pods.
func (p *plugin) place(entity fwk.QueuedEntityInfo) place {
	at := place{entity.GetPriority(), entity.GetTimestamp(), "", entity.GetTimestamp()}
	if own, ok := entity.(fwk.PodGroupInfo); ok {
		if g := own.GetPodGroup(); g != nil {
			at.since, at.group = g.CreationTimestamp.Time, own.GetKey()
		}
		return at
	}
	pod, ok := entity.(interface{ GetPodInfo() fwk.PodInfo })
	if !ok {
		return at
	}
	key, ok := KeyOf(pod.GetPodInfo().GetPod())
	if !ok {
		return at
	}
	if g, ok := p.groups.group(key); ok {
		at.since, at.group = g.Created, key.index()
		if class, err := p.groups.priorities.Get(g.PriorityClass); err == nil && g.PriorityClass != "" {
			at.priority = class.Value
		}
	}
	return at
}

func (a place) before(b place) bool {
	switch {
	case a.priority != b.priority:
		return a.priority > b.priority
	case !a.since.Equal(b.since):
		return a.since.Before(b.since)
	case a.group != b.group:
		return a.group < b.group
	}
	return a.queued.Before(b.queued)
}

// EventsToRegister implements fwk.EnqueueExtensions: what may unblock a Pod
// that this plugin rejected. The first Pod of a group to find a node activates
// the others.
func (p *plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	events := []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Delete | fwk.UpdatePodScaleDown}},
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAllocatable | fwk.UpdateNodeTaint}},
	}
	for _, api := range apis {
		kind := fwk.EventResource(fmt.Sprintf("%s.%s.%s", api.Resource, api.Version, api.Group))
		events = append(events, fwk.ClusterEventWithHint{Event: fwk.ClusterEvent{Resource: kind, ActionType: fwk.Add | fwk.Update}, QueueingHintFn: ofItsGroup(api)})
	}
	return events, nil
}

// ofItsGroup makes a change of a group requeue only that group's Pods.
func ofItsGroup(api schema.GroupVersionResource) fwk.QueueingHintFn {
	return func(_ klog.Logger, pod *corev1.Pod, _, changed any) (fwk.QueueingHint, error) {
		group, ok := changed.(metav1.Object)
		if !ok {
			return fwk.Queue, fmt.Errorf("cannot read a changed group: it is a %T", changed)
		}
		if key, ok := KeyOf(pod); !ok || key != (Key{api, group.GetNamespace(), group.GetName()}) {
			return fwk.QueueSkip, nil
		}
		return fwk.Queue, nil
	}
}

// PreEnqueue implements fwk.PreEnqueuePlugin: Pods wait for each other.
func (p *plugin) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	key, ok := KeyOf(pod)
	if !ok {
		return nil
	}
	g, ok := p.groups.group(key)
	if !ok {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, missing(key))
	}
	if waits := g.waitsFor(p.groups.members(key)); waits != "" {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, waits)
	}
	return nil
}

func missing(key Key) string {
	return fmt.Sprintf("%s does not exist yet: its Pods wait for it", key)
}

// sentAway notes in the state of a Pod's cycle that it was not let through to the
// nodes, so that they found nothing about it.
type sentAway struct{}

// Clone implements fwk.StateData.
func (sentAway) Clone() fwk.StateData { return sentAway{} }

// PreFilter implements fwk.PreFilterPlugin: no Pod is tried while the group needs
// another that found no node, and as long as none holds a place there must be
// room for all.
func (p *plugin) PreFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	key, ok := KeyOf(pod)
	if !ok {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	sent := func(code fwk.Code, why string) (*fwk.PreFilterResult, *fwk.Status) {
		state.Write(Name, sentAway{})
		return nil, fwk.NewStatus(code, why)
	}
	g, ok := p.groups.group(key)
	if !ok {
		return sent(fwk.UnschedulableAndUnresolvable, missing(key))
	}
	m := p.groups.members(key)
	if m.placed() {
		return nil, nil
	}
	if g.lacksNode(m, pod.UID) {
		return sent(fwk.Unschedulable, fmt.Sprintf("%s also needs another Pod, which found no node", key))
	}
	if m.held > 0 {
		return nil, nil
	}
	if waits := g.waitsFor(m); waits != "" {
		return sent(fwk.UnschedulableAndUnresolvable, waits)
	}
	switch lack, hopeless := g.fits(m, roomOf(nodes)); {
	case hopeless:
		return sent(fwk.UnschedulableAndUnresolvable, lack)
	case lack != "" && !outranks(corev1helpers.PodPriority(pod), nodes):
		return sent(fwk.Unschedulable, lack)
	}
	return nil, nil
}

// outranks reports whether some Pod could be preempted; then room can be made.
func outranks(priority int32, nodes []fwk.NodeInfo) bool {
	for _, n := range nodes {
		for _, pod := range n.GetPods() {
			if corev1helpers.PodPriority(pod.GetPod()) < priority {
				return true
			}
		}
	}
	return false
}

// PreFilterExtensions implements fwk.PreFilterPlugin.
func (p *plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// PostFilter implements fwk.PostFilterPlugin: a Pod of a group found no node. If
// the group needs it, the others release theirs.
func (p *plugin) PostFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	status := fwk.NewStatus(fwk.Unschedulable)
	key, ok := KeyOf(pod)
	if _, err := state.Read(Name); !ok || err == nil {
		return nil, status
	}
	p.groups.foundNone(key, pod.UID)
	if g, ok := p.groups.group(key); ok && g.lacksNode(p.groups.members(key), "") {
		p.giveUp(key, fmt.Sprintf("Pod %s of %s found no node", pod.Name, key))
	}
	return nil, status
}

// giveUp makes the waiting Pods of a group release their places.
func (p *plugin) giveUp(key Key, why string) {
	for _, held := range p.groups.holding(key) {
		if waiting := p.handle.GetWaitingPod(held); waiting != nil {
			p.groups.letGo(waiting.GetPod()) // at once, though the scheduler does it later
			waiting.Reject(Name, why)
		}
	}
}

// Reserve implements fwk.ReservePlugin.
func (p *plugin) Reserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	if key, ok := KeyOf(pod); ok {
		p.groups.hold(key, pod.UID)
	}
	return nil
}

// Unreserve implements fwk.ReservePlugin: when a Pod releases its place, for
// example after its group's timeout, the others do so too, unless all are already
// being bound.
func (p *plugin) Unreserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	key, ok := KeyOf(pod)
	if !ok {
		return
	}
	g, ok := p.groups.group(key)
	whole := ok && g.whole(p.groups.members(key))
	p.groups.letGo(pod)
	if !whole {
		p.giveUp(key, fmt.Sprintf("Pod %s of %s has released its place", pod.Name, key))
	}
}

// Permit implements fwk.PermitPlugin: a Pod that found a node waits for the
// others, which the first one calls, and the last one lets all go.
func (p *plugin) Permit(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.Status, time.Duration) {
	key, ok := KeyOf(pod)
	if !ok {
		return nil, 0
	}
	g, ok := p.groups.group(key)
	if !ok {
		return fwk.NewStatus(fwk.Unschedulable, missing(key)), 0
	}
	if m := p.groups.members(key); !g.whole(m) {
		if m.held == 1 {
			p.call(ctx, m.free)
		}
		return fwk.NewStatus(fwk.Wait), g.Timeout
	}
	for _, held := range p.groups.holding(key) {
		if waiting := p.handle.GetWaitingPod(held); waiting != nil {
			waiting.Allow(Name)
		}
	}
	return nil, 0
}

// call has Pods tried at once, but for those that are on their way already.
func (p *plugin) call(ctx context.Context, pods []*corev1.Pod) {
	all := make(map[string]*corev1.Pod, len(pods))
	for _, pod := range pods {
		all[string(pod.UID)] = pod
	}
	p.handle.Activate(klog.FromContext(ctx), all)
}
