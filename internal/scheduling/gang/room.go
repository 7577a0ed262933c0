// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresources "k8s.io/component-helpers/resource"
	fwk "k8s.io/kube-scheduler/framework"
)

// amounts are resources: processors in thousandths, anything else in its unit.
type amounts map[corev1.ResourceName]int64

func (a amounts) addQuantity(name corev1.ResourceName, q resource.Quantity) {
	if name == corev1.ResourceCPU {
		a[name] += q.MilliValue()
		return
	}
	a[name] += q.Value()
}

// requestsOf returns a Pod's requests, including its place on a node.
func requestsOf(pod *corev1.Pod) amounts {
	a := amounts{corev1.ResourcePods: 1}
	for name, q := range podresources.PodRequests(pod, podresources.PodResourcesOptions{}) {
		a.addQuantity(name, q)
	}
	return a
}

// least returns what the n smallest Pods need. Each resource is counted
// separately, so that no n of them need less.
func least(pods []*corev1.Pod, n int) amounts {
	each := map[corev1.ResourceName][]int64{}
	for _, p := range pods {
		for name, value := range requestsOf(p) {
			each[name] = append(each[name], value)
		}
	}
	sum := amounts{}
	for name, values := range each {
		// Pods that do not ask for it need none of it.
		none := len(pods) - len(values)
		slices.Sort(values)
		for _, value := range values[:min(len(values), max(0, n-none))] {
			sum[name] += value
		}
	}
	return sum
}

// room is the nodes' total and free capacity.
type room struct{ all, free amounts }

func roomOf(nodes []fwk.NodeInfo) room {
	r := room{amounts{}, amounts{}}
	for _, n := range nodes {
		have, used := n.GetAllocatable(), n.GetRequested()
		add := func(name corev1.ResourceName, all, taken int64) {
			r.all[name] += all
			r.free[name] += max(0, all-taken)
		}
		add(corev1.ResourceCPU, have.GetMilliCPU(), used.GetMilliCPU())
		add(corev1.ResourceMemory, have.GetMemory(), used.GetMemory())
		add(corev1.ResourceEphemeralStorage, have.GetEphemeralStorage(), used.GetEphemeralStorage())
		add(corev1.ResourcePods, int64(have.GetAllowedPodNumber()), int64(len(n.GetPods())))
		for name, all := range have.GetScalarResources() {
			add(name, all, used.GetScalarResources()[name])
		}
	}
	return r
}

// lacking says which resources do not suffice for need, "" if all do:
// "3 cpu (have 2)".
func (have amounts) lacking(need amounts) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(need)) {
		if need[name] > have[name] {
			words = append(words, fmt.Sprintf("%s %s (have %s)", amount(name, need[name]), name, amount(name, have[name])))
		}
	}
	return strings.Join(words, ", ")
}

func amount(name corev1.ResourceName, value int64) string {
	switch name {
	case corev1.ResourceCPU:
		return resource.NewMilliQuantity(value, resource.DecimalSI).String()
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return resource.NewQuantity(value, resource.BinarySI).String()
	}
	return resource.NewQuantity(value, resource.DecimalSI).String()
}
