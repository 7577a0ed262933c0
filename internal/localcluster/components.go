// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/config/crd"
	"diwan.dev/diwan/internal/admission"
	"diwan.dev/diwan/internal/gang"
	"diwan.dev/diwan/internal/operator"
	"diwan.dev/diwan/observation"
)

// startComponents starts what lives on the API.
func (c *Cluster) startComponents(ctx context.Context, cfg Config, store observation.Store, progress func(string)) error {
	progress("installing resources")
	hooks, target, err := c.listenForWebhooks()
	if err != nil {
		return err
	}
	target.Collectors = cfg.Collector != nil
	c.onStop(func() { hooks.Close() })
	// Before the garbage collector starts, which looks for new kinds only every
	// half minute.
	if err := c.installResources(ctx, target); err != nil {
		return err
	}
	progress("starting the controllers")
	if err := c.background(ctx, func(ctx context.Context) (func(), error) {
		return startWorkloads(ctx, c.as(controllersUser), c.keys)
	}); err != nil {
		return err
	}
	names := schedulerNames
	if name := cfg.GangScheduler; name != "" && !slices.Contains(names, name) {
		names = append(slices.Clone(names), name)
	}
	if err := c.background(ctx, func(ctx context.Context) (func(), error) {
		return startScheduler(ctx, c.as(schedulerUser), names)
	}); err != nil {
		return err
	}
	progress("starting the operator")
	op, err := c.startOperator(ctx, cfg, store, hooks)
	if err != nil {
		return err
	}
	progress("starting the node")
	if err := c.startNode(ctx, cfg, store, op); err != nil {
		return err
	}
	return op.WaitReady(ctx)
}

// installResources installs what is in resources.go, and the webhooks.
func (c *Cluster) installResources(ctx context.Context, target admission.Target) error {
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	direct, err := client.New(c.as(operatorUser), client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	definitions, err := crd.All()
	if err != nil {
		return err
	}
	groups, err := gang.Definitions()
	if err != nil {
		return err
	}
	definitions = append(definitions, groups...)
	if err := installResources(ctx, direct, definitions, append(dbManagerService(c.plan), admission.Mutating(target), admission.Validating(target))...); err != nil {
		return err
	}
	if err := c.warm(ctx, definitions); err != nil {
		return err
	}
	return installTrainer(ctx, direct, c.plan)
}

// newScheme knows the kinds that this package installs.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, storagev1.AddToScheme, apiextensionsv1.AddToScheme, trainer.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("cannot register kinds: %w", err)
		}
	}
	return scheme, nil
}

// listenForWebhooks opens a port for the API server's questions.
func (c *Cluster) listenForWebhooks() (net.Listener, admission.Target, error) {
	var target admission.Target
	if err := c.keys.server(pairWebhooks, "127.0.0.1"); err != nil {
		return nil, target, err
	}
	pair, err := tls.LoadX509KeyPair(c.keys.file(pairWebhooks), c.keys.file(pairWebhooks))
	if err != nil {
		return nil, target, fmt.Errorf("cannot read the webhooks' certificate: %w", err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{pair},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2", "http/1.1"},
	})
	if err != nil {
		return nil, target, fmt.Errorf("cannot listen for webhooks: %w", err)
	}
	target = admission.Target{
		URL:        "https://" + listener.Addr().String(),
		CABundle:   c.keys.authority(),
		Controller: operatorUser,
	}
	return listener, target, nil
}

// startOperator runs the reconcilers, as a user of their own.
func (c *Cluster) startOperator(ctx context.Context, cfg Config, store observation.Store, hooks net.Listener) (*operator.Operator, error) {
	operatorConfig := operator.DefaultConfig(c.as(operatorUser), store)
	operatorConfig.Webhooks = hooks
	operatorConfig.Collector = cfg.Collector
	operatorConfig.Dial = c.dialService
	operatorConfig.StatusServer = c.statusServer()
	operatorConfig.GangScheduler = cmp.Or(cfg.GangScheduler, schedulerNames[0])
	operatorConfig.GangsByPolicy = cfg.GangScheduler == ""
	operatorConfig.Add = func(manager ctrl.Manager) error {
		return (&claims{client: manager.GetClient(), dir: cfg.Home.Path("volumes")}).setup(manager)
	}
	op, err := operator.New(operatorConfig)
	if err != nil {
		return nil, err
	}
	return op, c.background(ctx, func(ctx context.Context) (func(), error) {
		return c.supervise(ctx, op.Run), nil
	})
}

// supervise runs a part until ctx ends; one that ends before is a failure of
// the cluster. wait waits for its end.
func (c *Cluster) supervise(ctx context.Context, run func(context.Context) error) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := run(ctx)
		if ctx.Err() == nil {
			c.fail(errors.Join(errors.New("a part of the cluster ended by itself"), err))
		}
	}()
	return func() { <-done }
}
