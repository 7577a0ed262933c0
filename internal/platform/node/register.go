// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// registration is how long an API server that cannot answer is asked again.
const registration = time.Minute

// register creates the Node object, or refreshes the one of an earlier node. An
// API server, or its storage, that is away for a moment is waited for.
func (n *Node) register(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, registration, true, func(ctx context.Context) (bool, error) {
		if last = n.tryRegister(ctx); last == nil {
			last = n.renewLease(ctx)
		}
		if apierrors.IsForbidden(last) || apierrors.IsUnauthorized(last) || apierrors.IsInvalid(last) || apierrors.IsBadRequest(last) {
			return false, last
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("cannot register node %s: %w", n.cfg.NodeName, errors.Join(last, ctx.Err()))
	}
	return nil
}

func (n *Node) tryRegister(ctx context.Context) error {
	nodes := n.cfg.Client.CoreV1().Nodes()
	object, err := nodes.Get(ctx, n.cfg.NodeName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		object, err = nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.cfg.NodeName, Labels: n.labels()}}, metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	if object.Labels == nil {
		object.Labels = map[string]string{}
	}
	maps.Copy(object.Labels, n.labels())
	object.Spec.Taints = withoutOurs(object.Spec.Taints)
	if object, err = nodes.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		return err
	}
	n.fillStatus(object, true, "")
	_, err = nodes.UpdateStatus(ctx, object, metav1.UpdateOptions{})
	return err
}

// labels are kubelet's.
func (n *Node) labels() map[string]string {
	return map[string]string{
		corev1.LabelHostname:        n.cfg.NodeName,
		corev1.LabelOSStable:        runtime.GOOS,
		corev1.LabelArchStable:      runtime.GOARCH,
		"beta.kubernetes.io/os":     runtime.GOOS,
		"beta.kubernetes.io/arch":   runtime.GOARCH,
		"node.kubernetes.io/diwan":  "process",
		"diwan.dev/container-model": "process",
	}
}

// withoutOurs drops the taints that the node itself manages: every new node
// gets one, but this one is ready when it registers.
func withoutOurs(taints []corev1.Taint) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable || t.Key == corev1.TaintNodeDiskPressure
	})
}

// taint keeps new Pods away under disk pressure. On a cluster the node
// lifecycle controller does that.
func (n *Node) taint(ctx context.Context, short bool) error {
	nodes := n.cfg.Client.CoreV1().Nodes()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		object, err := nodes.Get(ctx, n.cfg.NodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		object.Spec.Taints = withoutOurs(object.Spec.Taints)
		if short {
			object.Spec.Taints = append(object.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule})
		}
		_, err = nodes.Update(ctx, object, metav1.UpdateOptions{})
		return err
	})
}

// fillStatus writes what this node is into its object. pressure is why the disk
// is short; "" when it is not.
func (n *Node) fillStatus(object *corev1.Node, ready bool, pressure string) {
	s := &object.Status
	s.Capacity, s.Allocatable = n.capacity(), n.allocatable()
	s.NodeInfo = n.machine.info
	s.DaemonEndpoints.KubeletEndpoint.Port = n.cfg.Port
	hostname, _ := os.Hostname()
	s.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: n.serverAddress()},
		{Type: corev1.NodeHostName, Address: hostname},
	}
	set := func(kind corev1.NodeConditionType, ok bool, reason, message string) {
		c := corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message}
		if ok {
			c.Status = corev1.ConditionTrue
		}
		setNodeCondition(s, c, clock())
	}
	if ready {
		set(corev1.NodeReady, true, "KubeletReady", "the node runs Pods as processes")
	} else {
		set(corev1.NodeReady, false, "Stopped", "diwan was stopped")
	}
	set(corev1.NodeMemoryPressure, false, "KubeletHasSufficientMemory", "kubelet has sufficient memory available")
	set(corev1.NodePIDPressure, false, "KubeletHasSufficientPID", "kubelet has sufficient PID available")
	if pressure == "" {
		set(corev1.NodeDiskPressure, false, "KubeletHasNoDiskPressure", "kubelet has no disk pressure")
	} else {
		set(corev1.NodeDiskPressure, true, "KubeletHasDiskPressure", pressure)
	}
}

// serverAddress is where the API server finds this node's server: both run on
// this machine.
func (n *Node) serverAddress() string { return "127.0.0.1" }

func setNodeCondition(s *corev1.NodeStatus, c corev1.NodeCondition, now time.Time) {
	c.LastHeartbeatTime, c.LastTransitionTime = *stamp(now), *stamp(now)
	for i := range s.Conditions {
		if old := &s.Conditions[i]; old.Type == c.Type {
			if old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
			*old = c
			return
		}
	}
	s.Conditions = append(s.Conditions, c)
}

// updateStatus refreshes the Node object's status.
func (n *Node) updateStatus(ctx context.Context, ready bool, pressure string) error {
	nodes := n.cfg.Client.CoreV1().Nodes()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		object, err := nodes.Get(ctx, n.cfg.NodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		n.fillStatus(object, ready, pressure)
		_, err = nodes.UpdateStatus(ctx, object, metav1.UpdateOptions{})
		return err
	})
}

// reportStopped says that no Pods should come any more. The API server may be
// going, too, so it is tried once and not for long.
func (n *Node) reportStopped(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := n.updateStatus(ctx, false, ""); err != nil {
		n.cfg.Log.V(1).Info("cannot report that the node stopped", "error", err.Error())
	}
}

// renew renews the lease until ctx is done.
func (n *Node) renew(ctx context.Context) {
	tick := time.NewTicker(n.cfg.LeaseDuration / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := n.renewLease(ctx); err != nil && ctx.Err() == nil {
			n.cfg.Log.Error(err, "cannot renew the node's lease; retrying")
		}
	}
}

func (n *Node) renewLease(ctx context.Context) error {
	leases := n.cfg.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	seconds := int32(n.cfg.LeaseDuration / time.Second)
	now := metav1.NewMicroTime(clock())
	spec := coordinationv1.LeaseSpec{HolderIdentity: &n.cfg.NodeName, LeaseDurationSeconds: &seconds, RenewTime: &now}
	lease, err := leases.Get(ctx, n.cfg.NodeName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.cfg.NodeName}, Spec: spec}, metav1.CreateOptions{})
		if apierrors.IsNotFound(err) {
			return nil // the namespace is being made; the next renewal finds it
		}
	case err == nil:
		lease.Spec = spec
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("cannot renew the lease of node %s: %w", n.cfg.NodeName, err)
	}
	return nil
}
