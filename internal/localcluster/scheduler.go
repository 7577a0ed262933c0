// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"fmt"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// startScheduler starts kube-scheduler with its default profile; it ends with
// ctx, and wait waits for that.
func startScheduler(ctx context.Context, config *rest.Config) (wait func(), err error) {
	client, err := typedClient(config)
	if err != nil {
		return nil, err
	}
	shared := scheduler.NewInformerFactory(client, 0)
	if err := setTransforms(shared); err != nil {
		return nil, err
	}
	broadcaster := events.NewBroadcaster(sparingSink{&events.EventSinkImpl{Interface: client.EventsV1()}, newEventBudget()})
	sched, err := scheduler.New(ctx, client, shared, nil, profile.NewRecorderFactory(broadcaster),
		scheduler.WithKubeConfig(config),
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
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer broadcaster.Shutdown()
		shared.WaitForCacheSync(ctx.Done())
		if sched.WaitForHandlersSync(ctx) == nil {
			sched.Run(ctx)
		}
	}()
	return func() {
		<-done
		shared.Shutdown()
	}, nil
}

// setTransforms keeps managed fields out of the scheduler's memory.
func setTransforms(shared informers.SharedInformerFactory) error {
	return shared.Core().V1().Pods().Informer().SetTransform(withoutManagedFields)
}
