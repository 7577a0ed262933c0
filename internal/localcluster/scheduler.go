// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"diwan.dev/diwan/internal/gang"
)

// schedulerNames are those by which Pods may ask for the scheduler: its own, and
// those of schedulers for gangs, which it is too.
var schedulerNames = []string{"default-scheduler", "volcano", "scheduler-plugins-scheduler"}

// startScheduler starts kube-scheduler, which places gangs whole; it ends with
// ctx, and wait waits for that. Pods ask for it by any of the names.
func startScheduler(ctx context.Context, config *rest.Config, names []string) (wait func(), err error) {
	client, err := typedClient(config)
	if err != nil {
		return nil, err
	}
	anyKind, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot start the scheduler: %w", err)
	}
	shared, objects := scheduler.NewInformerFactory(client, 0, nil), dynamicinformer.NewDynamicSharedInformerFactory(anyKind, 0)
	if err := setTransforms(shared); err != nil {
		return nil, err
	}
	gangs, err := gang.NewGroups(client, anyKind, shared, objects)
	if err != nil {
		return nil, err
	}
	profiles, err := schedulerProfiles(names)
	if err != nil {
		return nil, err
	}
	broadcaster := events.NewBroadcaster(sparingSink{&events.EventSinkImpl{Interface: client.EventsV1()}, newEventBudget()})
	sched, err := scheduler.New(ctx, client, shared, objects, profile.NewRecorderFactory(broadcaster),
		scheduler.WithKubeConfig(config),
		scheduler.WithProfiles(profiles...),
		scheduler.WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{gang.Name: gangs.Plugin}),
		// One node: there is nothing to compute side by side.
		scheduler.WithParallelism(1),
	)
	if err != nil {
		return nil, fmt.Errorf("cannot start the scheduler: %w", err)
	}
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, fmt.Errorf("cannot start the scheduler: %w", err)
	}
	shared.Start(ctx.Done())
	objects.Start(ctx.Done())
	var running sync.WaitGroup
	running.Go(func() {
		shared.WaitForCacheSync(ctx.Done())
		objects.WaitForCacheSync(ctx.Done())
		if sched.WaitForHandlersSync(ctx) == nil {
			sched.Run(ctx)
		}
	})
	running.Go(func() { gangs.Run(ctx, broadcaster.NewRecorder(clientgoscheme.Scheme, names[0])) })
	return func() {
		running.Wait()
		broadcaster.Shutdown()
		shared.Shutdown()
		objects.Shutdown()
	}, nil
}

// schedulerProfiles are upstream's default with gangs, once for each name.
func schedulerProfiles(names []string) ([]schedulerapi.KubeSchedulerProfile, error) {
	defaults, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("cannot configure the scheduler: %w", err)
	}
	gangs := schedulerapi.Plugin{Name: gang.Name}
	var all []schedulerapi.KubeSchedulerProfile
	for _, name := range names {
		p := *defaults.Profiles[0].DeepCopy()
		p.SchedulerName = name
		spreadWhereAsked(p.PluginConfig)
		p.Plugins.MultiPoint.Enabled = append(p.Plugins.MultiPoint.Enabled, gangs)
		p.Plugins.QueueSort = schedulerapi.PluginSet{Enabled: []schedulerapi.Plugin{gangs}, Disabled: []schedulerapi.Plugin{{Name: "*"}}}
		// Before preemption, after which no other is asked.
		p.Plugins.PostFilter.Enabled = append([]schedulerapi.Plugin{gangs}, p.Plugins.PostFilter.Enabled...)
		all = append(all, p)
	}
	return all, nil
}

// spreadWhereAsked has Pods that do not ask to be spread not be. By default the
// Pods of each Service are, for which every Pod is held against all Services and
// all Pods, though there is one node.
func spreadWhereAsked(plugins []schedulerapi.PluginConfig) {
	for _, plugin := range plugins {
		if args, ok := plugin.Args.(*schedulerapi.PodTopologySpreadArgs); ok {
			args.DefaultingType = schedulerapi.ListDefaulting
		}
	}
}

// setTransforms keeps managed fields out of the scheduler's memory.
func setTransforms(shared informers.SharedInformerFactory) error {
	return shared.Core().V1().Pods().Informer().SetTransform(withoutManagedFields)
}
