// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	podresources "k8s.io/component-helpers/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// capacityLacks says which Pods fit on no node, and of what all of them together ask for more than
// there is. What other Pods use is left out: they end.
func capacityLacks(pods []PodSet, nodes []corev1.Node) []string {
	var lacks []string
	sum, members, whole := corev1.ResourceList{}, 0, corev1.ResourceList{}
	for _, n := range nodes {
		add(whole, n.Status.Allocatable, 1)
	}
	for _, set := range pods {
		requests := podresources.PodRequests(set.Pod, podresources.PodResourcesOptions{})
		delete(requests, corev1.ResourcePods)
		if why := fitsNone(set.Pod, requests, nodes); why != "" {
			lacks = append(lacks, at(set.Where, why))
			continue
		}
		add(sum, requests, set.Count)
		members += set.Count
	}
	for _, name := range slices.Sorted(maps.Keys(sum)) {
		have, want := whole[name], sum[name]
		if members > 1 && len(lacks) == 0 && want.Cmp(have) > 0 {
			text := fmt.Sprintf("%s: the %d Pods that run at the same time request %s in total, but there is %s", name, members, want.String(), have.String())
			lacks = append(lacks, text+remedy(name))
		}
	}
	return lacks
}

// fitsNone says why a Pod fits on no node; "" if it fits on one.
func fitsNone(pod *corev1.Pod, requests corev1.ResourceList, nodes []corev1.Node) string {
	var reasons []string
	for i := range nodes {
		n := &nodes[i]
		var short []string
		for _, name := range slices.Sorted(maps.Keys(requests)) {
			want, have := requests[name], n.Status.Allocatable[name]
			if want.Cmp(have) > 0 {
				short = append(short, fmt.Sprintf("%s %s, but node %s has %s%s", want.String(), name, n.Name, have.String(), remedy(name)))
			}
		}
		if len(short) > 0 {
			reasons = append(reasons, "requests "+strings.Join(short, ", "))
			continue
		}
		if ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(n); err == nil && !ok {
			reasons = append(reasons, fmt.Sprintf("its nodeSelector or affinity does not match node %s", n.Name))
			continue
		}
		keepsOff := func(t *corev1.Taint) bool {
			return t.Effect != corev1.TaintEffectPreferNoSchedule && t.Key != corev1.TaintNodeUnschedulable && !strings.HasPrefix(t.Key, "node.kubernetes.io/")
		}
		if taint, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, pod.Spec.Tolerations, keepsOff, false); untolerated {
			reasons = append(reasons, fmt.Sprintf("does not tolerate the taint %s of node %s", taint.Key, n.Name))
			continue
		}
		return ""
	}
	if len(nodes) == 0 {
		return "the cluster has no node"
	}
	if len(reasons) > 1 {
		return fmt.Sprintf("fits on none of %d nodes; for example, %s", len(nodes), reasons[0])
	}
	return reasons[0]
}

// remedy is what a user of a laptop can do.
func remedy(name corev1.ResourceName) string {
	if name == corev1.ResourceCPU {
		return " (on a laptop `diwan up --cpus N` lets Pods share CPUs)"
	}
	return ""
}

// add adds a list of quantities to another, so many times.
func add(sum, list corev1.ResourceList, times int) {
	for name, quantity := range list {
		total, product := sum[name], quantity.DeepCopy()
		product.Mul(int64(times))
		total.Add(product)
		sum[name] = total
	}
}

// at puts a place before a text.
func at(where, text string) string {
	if where == "" {
		return text
	}
	return where + ": " + text
}
