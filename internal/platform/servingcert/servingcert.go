// SPDX-License-Identifier: Apache-2.0

// Package servingcert manages the serving certificate of the webhooks automatically.
//
// A CA and a certificate that it signed are in a Secret, which all replicas of the
// operator share. Each checks it periodically:
//
//	Secret ──what is to end is recreated──▶ Secret   by whoever sees it first
//	Secret ──authorities──▶ webhook configurations   before anything is served by them
//	Secret ──certificate──▶ what is served           from the next handshake on
//
// A certificate lasts 90 days and is recreated 30 days before its end, an
// authority five years and one. A new authority is made known an hour before it
// signs, and the old one stays known to its end, so that no replica and no API
// server ever meets a certificate that it does not trust.
package servingcert

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Config configures the certificate. Start from DefaultConfig.
type Config struct {
	// API is the API server itself. It must be allowed to get and update the
	// Secret and both webhook configurations. Required.
	API client.Client
	// Secret holds everything. It must exist, if only empty. Required.
	Secret types.NamespacedName
	// Hosts are the names that are served, at least one.
	Hosts []string
	// Configurations is the name of the webhook configurations, mutating and
	// validating, whose caBundle is kept.
	Configurations string
	// Interval is how often a replica looks. Default 10 s: a new Secret is
	// served within that, and asking costs nothing.
	Interval time.Duration
	// Now is the time. Default time.Now.
	Now func() time.Time
	// Log logs each new certificate.
	Log logr.Logger
}

// DefaultConfig is the configuration of a replica.
func DefaultConfig(api client.Client, secret types.NamespacedName, configurations string, hosts ...string) Config {
	return Config{API: api, Secret: secret, Hosts: hosts, Configurations: configurations, Interval: 10 * time.Second, Now: time.Now, Log: logr.Discard()}
}

// Keeper manages a certificate and serves it.
type Keeper struct {
	cfg     Config
	serving atomic.Pointer[tls.Certificate]
	bundle  atomic.Pointer[[]byte]
}

// New makes a Keeper, which has nothing to serve until Run.
func New(cfg Config) *Keeper { return &Keeper{cfg: cfg} }

// errNotYet says that nothing can be served yet.
var errNotYet = errors.New("the webhooks' CA has not been published to the API server yet")

// GetCertificate is for tls.Config.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := k.serving.Load(); c != nil {
		return c, nil
	}
	return nil, errNotYet
}

// Authorities are the current and future CA certificates, PEM encoded.
func (k *Keeper) Authorities() ([]byte, error) {
	if b := k.bundle.Load(); b != nil {
		return *b, nil
	}
	return nil, errNotYet
}

// Ready returns why nothing is served; nil once the API server trusts the
// certificate.
func (k *Keeper) Ready() error {
	_, err := k.GetCertificate(nil)
	return err
}

// Run looks until ctx ends. An error only delays: it is logged, and all is
// tried again.
func (k *Keeper) Run(ctx context.Context) error {
	ticker := time.NewTicker(k.cfg.Interval)
	defer ticker.Stop()
	for {
		if err := k.look(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
			k.cfg.Log.Error(err, "Cannot manage the certificate of the webhooks; retrying")
		}
		wait := ticker.C
		if k.Ready() != nil {
			wait = time.After(time.Second)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-wait:
		}
	}
}

// look updates the Secret, then the configurations, then the served
// certificate.
func (k *Keeper) look(ctx context.Context) error {
	secret := &corev1.Secret{}
	if err := k.cfg.API.Get(ctx, k.cfg.Secret, secret); err != nil {
		return fmt.Errorf("cannot read Secret %s for the certificate of the webhooks: %w", k.cfg.Secret, err)
	}
	want, err := renew(secret.Data, k.cfg.Hosts, k.cfg.Now())
	if err != nil {
		return err
	}
	if !maps.EqualFunc(want, secret.Data, bytes.Equal) {
		secret.Data = want
		// Of two replicas that see the same Secret one succeeds; the other finds
		// what that one made.
		if err := k.cfg.API.Update(ctx, secret); err != nil {
			return fmt.Errorf("cannot write Secret %s: %w", k.cfg.Secret, err)
		}
		k.cfg.Log.Info("Created a certificate for the webhooks", "secret", k.cfg.Secret, "ends", data(want).ends())
	}
	if err := k.announce(ctx, want[keyBundle]); err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(want[keyCertificate], want[keyKey])
	if err != nil {
		return fmt.Errorf("cannot use Secret %s: %w", k.cfg.Secret, err)
	}
	authorities := want[keyBundle]
	k.bundle.Store(&authorities)
	k.serving.Store(&pair)
	return nil
}

// announce makes the authorities known to the API server.
func (k *Keeper) announce(ctx context.Context, bundle []byte) error {
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	for kind, of := range map[string]struct {
		object  client.Object
		clients func() []*admissionregistrationv1.WebhookClientConfig
	}{
		"MutatingWebhookConfiguration": {mutating, func() (all []*admissionregistrationv1.WebhookClientConfig) {
			for i := range mutating.Webhooks {
				all = append(all, &mutating.Webhooks[i].ClientConfig)
			}
			return all
		}},
		"ValidatingWebhookConfiguration": {validating, func() (all []*admissionregistrationv1.WebhookClientConfig) {
			for i := range validating.Webhooks {
				all = append(all, &validating.Webhooks[i].ClientConfig)
			}
			return all
		}},
	} {
		if err := k.cfg.API.Get(ctx, client.ObjectKey{Name: k.cfg.Configurations}, of.object); err != nil {
			return fmt.Errorf("cannot read %s %s: %w", kind, k.cfg.Configurations, err)
		}
		changed := false
		for _, c := range of.clients() {
			if !bytes.Equal(c.CABundle, bundle) {
				c.CABundle, changed = bundle, true
			}
		}
		if !changed {
			continue
		}
		if err := k.cfg.API.Update(ctx, of.object); err != nil {
			return fmt.Errorf("cannot write the CA bundle into %s %s: %w", kind, k.cfg.Configurations, err)
		}
	}
	return nil
}
