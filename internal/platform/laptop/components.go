// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/config/crd"
	"diwan.dev/diwan/internal/platform/admission"
	"diwan.dev/diwan/internal/platform/domain"
	"diwan.dev/diwan/internal/platform/metricsapi"
	"diwan.dev/diwan/internal/platform/operator"
)

// startComponents starts what lives on the API.
func (c *Cluster) startComponents(ctx context.Context, cfg Config, progress func(string)) error {
	progress("installing resources")
	hooks, target, err := c.listenForWebhooks()
	if err != nil {
		return err
	}
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
	if err := c.background(ctx, func(ctx context.Context) (func(), error) {
		return startScheduler(ctx, c.as(schedulerUser), c.wings)
	}); err != nil {
		return err
	}
	progress("starting the operator")
	op, err := c.startOperator(ctx, cfg, hooks)
	if err != nil {
		return err
	}
	progress("starting the node")
	if err := c.startNode(ctx, cfg, op.Servers()); err != nil {
		return err
	}
	if err := op.WaitReady(ctx); err != nil {
		return err
	}
	return c.notices(ctx, cfg)
}

// notices shows the wings' notices to the user.
func (c *Cluster) notices(ctx context.Context, cfg Config) error {
	for _, w := range c.wings {
		if w.Notice == nil {
			continue
		}
		text, err := w.Notice(ctx)
		if err != nil {
			return err
		}
		if text == "" {
			continue
		}
		klog.Background().Info("Notice", "wing", w.Name, "what", text)
		if cfg.Notice != nil {
			cfg.Notice(text)
		}
	}
	return nil
}

// installResources installs what is in resources.go, the webhooks, and what the wings
// have.
func (c *Cluster) installResources(ctx context.Context, target admission.Target) error {
	domains := c.domains()
	scheme, err := newScheme(domains)
	if err != nil {
		return err
	}
	direct, err := client.New(c.as(operatorUser), client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("cannot create a client: %w", err)
	}
	definitions, err := crd.All()
	if err != nil {
		return err
	}
	var webhooks []admission.Webhook
	for _, d := range domains {
		webhooks = append(webhooks, d.Webhooks...)
	}
	first := []client.Object{admission.Mutating(target, webhooks), admission.Validating(target, webhooks), metricsapi.Reader(), storageClass()}
	for _, class := range runtimeClasses() {
		first = append(first, class)
	}
	for _, service := range metricsapi.Services() {
		first = append(first, service)
	}
	var last []client.Object
	for _, w := range c.wings {
		definitions = append(definitions, w.Definitions...)
		for _, o := range w.Objects {
			if _, ok := o.(*corev1.Namespace); ok {
				first = append(first, o)
			} else {
				last = append(last, o)
			}
		}
	}
	if err := installResources(ctx, direct, definitions, first); err != nil {
		return err
	}
	if err := c.waitServed(ctx, definitions); err != nil {
		return err
	}
	return installAll(ctx, direct, last)
}

// newScheme knows the kinds that this package installs.
func newScheme(domains []domain.Domain) (*runtime.Scheme, error) {
	scheme, err := domain.NewScheme(domains...)
	if err != nil {
		return nil, err
	}
	for _, add := range []func(*runtime.Scheme) error{apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("cannot register kinds: %w", err)
		}
	}
	return scheme, nil
}

// listenForWebhooks opens a port for the questions of the API server alone.
func (c *Cluster) listenForWebhooks() (net.Listener, admission.Target, error) {
	var target admission.Target
	if err := c.keys.server(pairWebhooks, "127.0.0.1"); err != nil {
		return nil, target, err
	}
	pair, err := tls.LoadX509KeyPair(c.keys.file(pairWebhooks), c.keys.file(pairWebhooks))
	if err != nil {
		return nil, target, fmt.Errorf("cannot read the webhooks' certificate: %w", err)
	}
	listener, err := listenLoopback()
	if err != nil {
		return nil, target, fmt.Errorf("cannot listen for webhooks: %w", err)
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{pair},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2", "http/1.1"},
	}
	admission.VerifyClients(config, c.keys.pool(), apiServerUser)
	config.ClientAuth = tls.RequireAndVerifyClientCert // nothing else is served here
	listener = tls.NewListener(listener, config)
	target = admission.Target{
		URL:        "https://" + listener.Addr().String(),
		CABundle:   c.keys.authority(),
		Controller: operatorUser,
	}
	return listener, target, nil
}

// startOperator runs the reconcilers, as a user of their own.
func (c *Cluster) startOperator(ctx context.Context, cfg Config, hooks net.Listener) (*operator.Operator, error) {
	volumes := claims{dir: cfg.Home.Path("volumes")}
	operatorConfig := operator.DefaultConfig(c.as(operatorUser), append(c.domains(), volumes.domain())...)
	operatorConfig.Webhooks, operatorConfig.WebhookClientsKnown = hooks, true
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
