// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/internal/platform/admission"
	"diwan.dev/diwan/internal/platform/servingcert"
)

// webhookDrain is longer than a busy API server leaves a connection unused.
const webhookDrain = time.Second

// webhookFlags are the flags of `diwan operator` for webhooks. Their
// certificate comes from a directory, or is managed in a Secret.
type webhookFlags struct {
	address, certs  string
	secret, service string
	clientCA        string
	clientNames     []string
}

func (f *webhookFlags) addTo(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.address, "webhook-address", ":8443", "listen address of the webhooks")
	flags.StringVar(&f.certs, "webhook-certs", "", "directory with tls.crt and tls.key for the webhooks, if the operator does not manage them")
	flags.StringVar(&f.secret, "webhook-secret", "", "NAMESPACE/NAME of the Secret in which the operator manages the webhooks' certificate; without this or --webhook-certs there are no webhooks")
	flags.StringVar(&f.service, "webhook-service", "", "NAMESPACE/NAME of the webhooks' Service, on port 443, for --webhook-secret; TrainJobs also report their progress there")
	flags.StringVar(&f.clientCA, "webhook-client-ca", "", "file with CA certificates; only clients with a certificate signed by one of them, such as the API server, get an answer; if empty, anyone does")
	flags.StringSliceVar(&f.clientNames, "webhook-client-names", nil, "allowed common names of the API server's certificate; any if empty")
	command.MarkFlagDirname("webhook-certs")
}

// served reports whether there are webhooks.
func (f *webhookFlags) served() bool { return f.certs != "" || f.secret != "" }

func (f *webhookFlags) check() error {
	switch {
	case f.certs != "" && f.secret != "":
		return Usagef("--webhook-certs and --webhook-secret are mutually exclusive")
	case f.secret != "" && f.service == "":
		return Usagef("--webhook-secret requires --webhook-service")
	case f.clientCA == "" && len(f.clientNames) > 0:
		return Usagef("--webhook-client-names requires --webhook-client-ca")
	case f.service != "" && !f.served():
		return Usagef("--webhook-service requires --webhook-secret or --webhook-certs")
	}
	for flag, value := range map[string]string{"webhook-secret": f.secret, "webhook-service": f.service} {
		if value == "" {
			continue
		}
		if _, err := namespacedName(flag, value); err != nil {
			return err
		}
	}
	return nil
}

// namespacedName reads NAMESPACE/NAME.
func namespacedName(flag, value string) (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(value, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, Usagef("cannot use --%s %q: the form is NAMESPACE/NAME", flag, value)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// certificate is one that is served and kept.
type certificate struct {
	get   func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	keep  func(context.Context) error
	ready func() error // nil: it always is
	// authorities are the certificates that vouch for it.
	authorities func() ([]byte, error)
}

// certificate finds the webhooks' certificate.
func (f *webhookFlags) certificate(api client.Client) (*certificate, error) {
	if f.certs != "" {
		files, err := certwatcher.New(filepath.Join(f.certs, "tls.crt"), filepath.Join(f.certs, "tls.key"))
		if err != nil {
			return nil, fmt.Errorf("cannot read the certificate of the webhooks in %s: %w", f.certs, err)
		}
		authorities := func() ([]byte, error) { return os.ReadFile(filepath.Join(f.certs, "ca.crt")) }
		return &certificate{get: files.GetCertificate, keep: files.Start, authorities: authorities}, nil
	}
	secret, err := namespacedName("webhook-secret", f.secret)
	if err != nil {
		return nil, err
	}
	service, err := namespacedName("webhook-service", f.service)
	if err != nil {
		return nil, err
	}
	config := servingcert.DefaultConfig(api, secret, admission.ConfigurationName, service.Name+"."+service.Namespace+".svc")
	config.Log = klog.Background().WithName("webhooks")
	keeper := servingcert.New(config)
	return &certificate{get: keeper.GetCertificate, keep: keeper.Run, ready: keeper.Ready, authorities: keeper.Authorities}, nil
}

// reached is where Pods reach the webhooks' address: at their Service, if there is one.
func (f *webhookFlags) reached(c *certificate) *Service {
	name, err := namespacedName("webhook-service", f.service)
	if err != nil {
		return nil
	}
	service := &Service{URL: "https://" + name.Name + "." + name.Namespace + ".svc:443", Authorities: c.authorities}
	if f.certs != "" {
		_, service.Unverifiable = c.authorities()
	}
	return service
}

// listen listens with a certificate that may change. Authorities of clients are
// read for each connection: the file may be replaced.
func (f *webhookFlags) listen(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) (net.Listener, error) {
	config := &tls.Config{
		GetCertificate: certificate,
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
	}
	if f.clientCA != "" {
		if _, err := readAuthorities(f.clientCA); err != nil {
			return nil, err
		}
		plain := config.Clone()
		config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			authorities, err := readAuthorities(f.clientCA)
			if err != nil {
				return nil, err
			}
			verifying := plain.Clone()
			admission.VerifyClients(verifying, authorities, f.clientNames...)
			return verifying, nil
		}
	}
	listener, err := tls.Listen("tcp", f.address, config)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for webhooks: %w", err)
	}
	return listener, nil
}

// readAuthorities reads the certificates that vouch for clients.
func readAuthorities(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the CA certificates for the webhooks' clients: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("cannot read the CA certificates for the webhooks' clients: %s has no PEM certificate", path)
	}
	return pool, nil
}
