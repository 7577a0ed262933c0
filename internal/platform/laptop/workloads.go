// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	hpaconfigv1alpha1 "k8s.io/kube-controller-manager/config/v1alpha1"
	pkgcontroller "k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	hpaconfig "k8s.io/kubernetes/pkg/controller/podautoscaler/config/v1alpha1"
	hpametrics "k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	"k8s.io/kubernetes/pkg/controller/podgc"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	"k8s.io/kubernetes/pkg/controller/scheduling/podgroupprotection"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"
	quotainstall "k8s.io/kubernetes/pkg/quota/v1/install"
	serviceaccounttoken "k8s.io/kubernetes/pkg/serviceaccount"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"k8s.io/metrics/pkg/client/external_metrics"
)

// jobBatchPeriod is how long the Job controller waits for more Pods of a Job
// to change before it looks. Upstream's second is for Jobs of thousands of
// Pods on slow networks; a trial is one Pod, and its end is on the critical path.
const jobBatchPeriod = time.Millisecond

// jobRetry is how long the Job controller waits before it looks again at a Job
// that its cache shows older than it wrote it. Upstream's second would be as
// long as many trials.
const jobRetry = 2 * time.Millisecond

// Workers of the controllers on the path of every trial, and of the others.
const (
	busyWorkers  = 16
	quietWorkers = 2
)

// workloads are the controllers of kube-controller-manager that a laptop needs.
type workloads struct {
	config    *rest.Config
	client    kubernetes.Interface
	shared    informers.SharedInformerFactory
	metadata  metadatainformer.SharedInformerFactory
	discovery discovery.DiscoveryInterface
	mapper    meta.ResettableRESTMapper
	started   chan struct{}
	run       []func(context.Context)
}

// startWorkloads starts the controllers; they end with ctx, and wait waits for that.
func startWorkloads(ctx context.Context, config *rest.Config, keys *pki) (wait func(), err error) {
	w, err := newWorkloads(config)
	if err != nil {
		return nil, err
	}
	for _, add := range []func(context.Context) error{
		w.addJobs, w.addGroups, w.addApps, w.addAutoscaler, w.addNetwork, w.addNamespaces, w.addQuota, w.addGarbageCollector,
		func(ctx context.Context) error { return w.addAccounts(ctx, keys) },
	} {
		if err := add(ctx); err != nil {
			return nil, fmt.Errorf("cannot start the workload controllers: %w", err)
		}
	}
	w.shared.Start(ctx.Done())
	w.metadata.Start(ctx.Done())
	close(w.started)
	var group sync.WaitGroup
	for _, run := range w.run {
		group.Go(func() { run(ctx) })
	}
	return func() {
		group.Wait()
		w.shared.Shutdown()
		w.metadata.Shutdown()
	}, nil
}

func newWorkloads(config *rest.Config) (*workloads, error) {
	client, err := typedClient(config)
	if err != nil {
		return nil, err
	}
	client = sparing{client, newEventBudget()}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client: %w", err)
	}
	disc := memory.NewMemCacheClient(client.Discovery())
	return &workloads{
		config:    config,
		client:    client,
		shared:    informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(withoutManagedFields)),
		metadata:  metadatainformer.NewSharedInformerFactoryWithOptions(meta, 0, metadatainformer.WithTransform(onlyBelonging)),
		discovery: client.Discovery(),
		mapper:    restmapper.NewDeferredDiscoveryRESTMapper(disc),
		started:   make(chan struct{}),
	}, nil
}

// typedClient speaks protobuf, which is cheaper to read and write than JSON.
func typedClient(config *rest.Config) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client: %w", err)
	}
	return client, nil
}

// withoutManagedFields drops what no controller reads from what is kept in memory.
func withoutManagedFields(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}

// onlyBelonging keeps of an object's metadata what the garbage collector and
// quotas read: what it is and to whom it belongs. It is kept of each trial.
func onlyBelonging(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(nil)
		accessor.SetLabels(nil)
		accessor.SetAnnotations(nil)
	}
	return obj, nil
}

var _, _ cache.TransformFunc = withoutManagedFields, onlyBelonging

func (w *workloads) add(run func(context.Context)) { w.run = append(w.run, run) }

// workers adapts the Run functions of upstream, which take a count.
func workers(run func(context.Context, int), n int) func(context.Context) {
	return func(ctx context.Context) { run(ctx, n) }
}

func (w *workloads) addJobs(ctx context.Context) error {
	job.SyncJobBatchPeriod, job.DefaultJobApiBackOff = jobBatchPeriod, jobRetry
	jobs, err := job.NewController(ctx, w.client, w.shared.Core().V1().Pods(), w.shared.Batch().V1().Jobs(), nil, nil)
	if err != nil {
		return err
	}
	w.add(workers(jobs.Run, busyWorkers))
	crons, err := cronjob.NewControllerV2(ctx, w.shared.Batch().V1().Jobs(), w.shared.Batch().V1().CronJobs(), w.client)
	if err != nil {
		return err
	}
	w.add(workers(crons.Run, quietWorkers))
	w.add(workers(ttlafterfinished.New(ctx, w.shared.Batch().V1().Jobs(), w.client).Run, quietWorkers))
	w.add(podgc.NewPodGC(ctx, w.client, w.shared.Core().V1().Pods(), w.shared.Core().V1().Nodes(), 12_500).Run)
	return nil
}

// addGroups has PodGroups stay that are deleted, as long as Pods need them.
func (w *workloads) addGroups(ctx context.Context) error {
	groups, err := podgroupprotection.NewPodGroupProtectionController(klog.FromContext(ctx), w.shared.Scheduling().V1beta1().PodGroups(), w.shared.Core().V1().Pods(), w.client)
	if err != nil {
		return err
	}
	w.add(workers(groups.Run, 1))
	return nil
}

func (w *workloads) addApps(ctx context.Context) error {
	pods, apps := w.shared.Core().V1().Pods(), w.shared.Apps().V1()
	w.add(workers(replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), pods, w.client, replicaset.BurstReplicas).Run, quietWorkers))
	deployments, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), pods, w.client)
	if err != nil {
		return err
	}
	w.add(workers(deployments.Run, quietWorkers))
	w.add(workers(statefulset.NewStatefulSetController(ctx, pods, apps.StatefulSets(), w.shared.Core().V1().PersistentVolumeClaims(), apps.ControllerRevisions(), w.client).Run, quietWorkers))
	daemons, err := daemon.NewDaemonSetsController(ctx, apps.DaemonSets(), apps.ControllerRevisions(), pods, w.shared.Core().V1().Nodes(), w.client, flowcontrol.NewBackOff(time.Second, 15*time.Minute))
	if err != nil {
		return err
	}
	w.add(workers(daemons.Run, quietWorkers))
	return nil
}

// addAutoscaler has HorizontalPodAutoscalers work, with upstream's times.
func (w *workloads) addAutoscaler(ctx context.Context) error {
	var times hpaconfigv1alpha1.HPAControllerConfiguration
	hpaconfig.RecommendedDefaultHPAControllerConfiguration(&times)
	scales, err := scale.NewForConfig(w.config, w.mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(w.discovery))
	if err != nil {
		return err
	}
	resources, err := metricsclient.NewForConfig(w.config)
	if err != nil {
		return err
	}
	external, err := external_metrics.NewForConfig(w.config)
	if err != nil {
		return err
	}
	versions := custom_metrics.NewAvailableAPIsGetter(w.discovery)
	clients := hpametrics.NewRESTMetricsClient(resources, custom_metrics.NewForConfig(w.config, w.mapper, versions), external)
	autoscaler := podautoscaler.NewHorizontalController(ctx, w.client.CoreV1(), scales, w.client.AutoscalingV2(), w.mapper, clients,
		w.shared.Autoscaling().V2().HorizontalPodAutoscalers(), w.shared.Core().V1().Pods(),
		times.HorizontalPodAutoscalerSyncPeriod.Duration, times.HorizontalPodAutoscalerDownscaleStabilizationWindow.Duration,
		times.HorizontalPodAutoscalerTolerance, times.HorizontalPodAutoscalerCPUInitializationPeriod.Duration,
		times.HorizontalPodAutoscalerInitialReadinessDelay.Duration)
	w.add(workers(autoscaler.Run, 1))
	return nil
}

func (w *workloads) addNetwork(ctx context.Context) error {
	const maxEndpointsPerSlice, batchPeriod = 100, 0
	slices := endpointslice.NewController(ctx, w.shared.Core().V1().Pods(), w.shared.Core().V1().Services(), w.shared.Core().V1().Nodes(), w.shared.Discovery().V1().EndpointSlices(), maxEndpointsPerSlice, w.client, batchPeriod)
	w.add(workers(slices.Run, quietWorkers))
	return nil
}

func (w *workloads) addNamespaces(ctx context.Context) error {
	meta, err := metadata.NewForConfig(w.config)
	if err != nil {
		return err
	}
	namespaces := namespace.NewNamespaceController(ctx, w.client, meta, w.discovery.ServerPreferredNamespacedResources, w.shared.Core().V1().Namespaces(), 5*time.Minute, corev1.FinalizerKubernetes)
	w.add(workers(namespaces.Run, quietWorkers))
	return nil
}

func (w *workloads) addAccounts(ctx context.Context, keys *pki) error {
	logger := klog.FromContext(ctx)
	core := w.shared.Core().V1()
	accounts, err := serviceaccount.NewServiceAccountsController(logger, core.ServiceAccounts(), core.Namespaces(), w.client, serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return err
	}
	w.add(workers(accounts.Run, 1))

	key, err := keyutil.PrivateKeyFromFile(keys.file(keyAccounts))
	if err != nil {
		return err
	}
	generator, err := serviceaccounttoken.JWTTokenGenerator(serviceaccounttoken.LegacyIssuer, key)
	if err != nil {
		return err
	}
	tokens, err := serviceaccount.NewTokensController(logger, core.ServiceAccounts(), core.Secrets(), w.client, serviceaccount.TokensControllerOptions{TokenGenerator: generator, RootCA: keys.authority()})
	if err != nil {
		return err
	}
	w.add(workers(tokens.Run, 1))

	publisher, err := rootcacertpublisher.NewPublisher(core.ConfigMaps(), core.Namespaces(), w.client, keys.authority())
	if err != nil {
		return err
	}
	w.add(workers(publisher.Run, 1))
	w.add(workers(clusterroleaggregation.NewClusterRoleAggregation(w.shared.Rbac().V1().ClusterRoles(), w.client.RbacV1()).Run, 1))
	return nil
}

// objects gives informers for typed resources, and for others by metadata.
func (w *workloads) objects() informerfactory.InformerFactory {
	return informerfactory.NewInformerFactory(w.shared, w.metadata)
}

func (w *workloads) addQuota(ctx context.Context) error {
	evaluators, err := quotainstall.NewQuotaConfigurationForControllers(generic.ListerFuncForResourceFunc(w.shared.ForResource), w.shared)
	if err != nil {
		return err
	}
	discover := w.discovery.ServerPreferredNamespacedResources
	quotas, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:               w.client.CoreV1(),
		ResourceQuotaInformer:     w.shared.Core().V1().ResourceQuotas(),
		ResyncPeriod:              pkgcontroller.StaticResyncPeriodFunc(5 * time.Minute),
		InformerFactory:           w.objects(),
		ReplenishmentResyncPeriod: pkgcontroller.StaticResyncPeriodFunc(12 * time.Hour),
		DiscoveryFunc:             discover,
		IgnoredResourcesFunc:      evaluators.IgnoredResources,
		InformersStarted:          w.started,
		Registry:                  generic.NewRegistry(evaluators.Evaluators()),
		UpdateFilter:              quotainstall.DefaultUpdateFilter(),
	})
	if err != nil {
		return err
	}
	w.add(workers(quotas.Run, quietWorkers))
	w.add(func(ctx context.Context) { quotas.Sync(ctx, discover, 30*time.Second) })
	return nil
}

func (w *workloads) addGarbageCollector(ctx context.Context) error {
	meta, err := metadata.NewForConfig(w.config)
	if err != nil {
		return err
	}
	ignored := map[schema.GroupResource]struct{}{
		{Group: "coordination.k8s.io", Resource: "leases"}: {},
	}
	for resource := range garbagecollector.DefaultIgnoredResources() {
		ignored[resource] = struct{}{}
	}
	collector, err := garbagecollector.NewGarbageCollector(ctx, w.client, meta, w.mapper, ignored, w.objects(), w.started)
	if err != nil {
		return err
	}
	const sync = 30 * time.Second
	w.add(func(ctx context.Context) { collector.Run(ctx, busyWorkers, sync) })
	w.add(func(ctx context.Context) { collector.Sync(ctx, w.discovery, sync) })
	return nil
}
