// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
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
)

// startScheduler starts kube-scheduler with the plugins of wings; it ends with
// ctx, and wait waits for that. Pods ask for it by its own name or a wing's.
func startScheduler(ctx context.Context, config *rest.Config, wings []Wing) (wait func(), err error) {
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
	names, registry := []string{corev1.DefaultSchedulerName}, frameworkruntime.Registry{}
	var plugins []*SchedulerPlugin
	for _, w := range wings {
		if w.Scheduling == nil {
			continue
		}
		plugin, err := w.Scheduling.New(client, anyKind, shared, objects)
		if err != nil {
			return nil, fmt.Errorf("cannot start the scheduler: %w", err)
		}
		names, plugins = append(names, w.Scheduling.Names...), append(plugins, plugin)
		registry[plugin.Name] = plugin.Factory
	}
	profiles, err := schedulerProfiles(names, plugins)
	if err != nil {
		return nil, err
	}
	broadcaster := events.NewBroadcaster(sparingSink{&events.EventSinkImpl{Interface: client.EventsV1()}, newEventBudget()})
	sched, err := scheduler.New(ctx, client, shared, objects, profile.NewRecorderFactory(broadcaster),
		scheduler.WithKubeConfig(config),
		scheduler.WithProfiles(profiles...),
		scheduler.WithFrameworkOutOfTreeRegistry(registry),
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
	for _, plugin := range plugins {
		running.Go(func() { plugin.Run(ctx, broadcaster.NewRecorder(clientgoscheme.Scheme, names[0])) })
	}
	return func() {
		running.Wait()
		broadcaster.Shutdown()
		shared.Shutdown()
		objects.Shutdown()
	}, nil
}

// schedulerProfiles are upstream's default with the plugins, once for each name.
func schedulerProfiles(names []string, plugins []*SchedulerPlugin) ([]schedulerapi.KubeSchedulerProfile, error) {
	defaults, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("cannot configure the scheduler: %w", err)
	}
	var all []schedulerapi.KubeSchedulerProfile
	for _, name := range names {
		p := *defaults.Profiles[0].DeepCopy()
		p.SchedulerName = name
		spreadWhereAsked(p.PluginConfig)
		for _, plugin := range plugins {
			plugin.Enable(&p)
		}
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
