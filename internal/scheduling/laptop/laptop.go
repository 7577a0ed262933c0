// SPDX-License-Identifier: Apache-2.0

// Package laptop is what scheduling adds to a laptop: its scheduler places gangs
// whole, by the PodGroups of scheduler-plugins and of Volcano.
package laptop

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"diwan.dev/diwan/internal/platform/laptop"
	"diwan.dev/diwan/internal/scheduling/gang"
)

// names are those of schedulers for gangs, which the laptop's scheduler is too.
var names = []string{"volcano", "scheduler-plugins-scheduler"}

// New returns the wing. Pods may ask for the scheduler also by another name, if that
// is not "".
func New(another string) (laptop.Wing, error) {
	definitions, err := gang.Definitions()
	if err != nil {
		return laptop.Wing{}, err
	}
	all := slices.Clone(names)
	if another != "" && another != corev1.DefaultSchedulerName && !slices.Contains(all, another) {
		all = append(all, another)
	}
	return laptop.Wing{Name: "scheduling", Definitions: definitions, Scheduling: &laptop.Scheduling{Names: all, New: newPlugin}}, nil
}

func newPlugin(kube kubernetes.Interface, anyKind dynamic.Interface, shared informers.SharedInformerFactory, objects dynamicinformer.DynamicSharedInformerFactory) (*laptop.SchedulerPlugin, error) {
	groups, err := gang.NewGroups(kube, anyKind, shared, objects)
	if err != nil {
		return nil, err
	}
	return &laptop.SchedulerPlugin{Name: gang.Name, Factory: groups.Plugin, Enable: enable, Run: groups.Run}, nil
}

// enable has the plugin decide the order of Pods, whether each may be placed, and
// what becomes of one that fits nowhere, before preemption, after which no other
// plugin is asked.
func enable(p *schedulerapi.KubeSchedulerProfile) {
	gangs := schedulerapi.Plugin{Name: gang.Name}
	p.Plugins.MultiPoint.Enabled = append(p.Plugins.MultiPoint.Enabled, gangs)
	p.Plugins.QueueSort = schedulerapi.PluginSet{Enabled: []schedulerapi.Plugin{gangs}, Disabled: []schedulerapi.Plugin{{Name: "*"}}}
	p.Plugins.PostFilter.Enabled = append([]schedulerapi.Plugin{gangs}, p.Plugins.PostFilter.Enabled...)
}
