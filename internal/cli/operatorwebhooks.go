// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/internal/admission"
	"diwan.dev/diwan/internal/controller/trainjob"
	"diwan.dev/diwan/internal/servingcert"
)

// webhookFlags are those of `diwan operator` that concern webhooks. Their
// certificate comes from a directory, or is kept in a Secret.
type webhookFlags struct {
	address, certs  string
	secret, service string
}

func (f *webhookFlags) addTo(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.address, "webhook-address", ":8443", "address where the API server's questions are answered")
	flags.StringVar(&f.certs, "webhook-certs", "", "directory with tls.crt and tls.key for the webhooks, which someone else keeps")
	flags.StringVar(&f.secret, "webhook-secret", "", "NAMESPACE/NAME of a Secret in which the webhooks' certificate is kept; no webhooks without this or --webhook-certs")
	flags.StringVar(&f.service, "webhook-service", "", "NAMESPACE/NAME of the Service that leads to the webhooks, at port 443, for --webhook-secret; also where TrainJobs tell how far they are")
	command.MarkFlagDirname("webhook-certs")
}

// served reports whether there are webhooks.
func (f *webhookFlags) served() bool { return f.certs != "" || f.secret != "" }

func (f *webhookFlags) check() error {
	switch {
	case f.certs != "" && f.secret != "":
		return usagef("--webhook-certs and --webhook-secret exclude each other")
	case f.secret != "" && f.service == "":
		return usagef("--webhook-secret needs --webhook-service")
	case f.service != "" && !f.served():
		return usagef("--webhook-service needs --webhook-secret or --webhook-certs")
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
		return types.NamespacedName{}, usagef("cannot use --%s %q: the form is NAMESPACE/NAME", flag, value)
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

// certificate finds that of the webhooks.
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

// statusServer is where the Pods of TrainJobs tell how far they are: at the
// webhooks' Service, unless there is none, or its authorities cannot be known.
func (f *webhookFlags) statusServer(c *certificate) trainjob.StatusServer {
	service, err := namespacedName("webhook-service", f.service)
	if err != nil {
		return trainjob.StatusServer{}
	}
	if f.certs != "" {
		if _, err := c.authorities(); err != nil {
			klog.Background().Info("TrainJobs cannot tell how far they are", "reason", err.Error())
			return trainjob.StatusServer{}
		}
	}
	return trainjob.StatusServer{URL: "https://" + service.Name + "." + service.Namespace + ".svc:443", Authorities: c.authorities}
}

// listenTLS listens with a certificate that may change.
func listenTLS(address string, certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) (net.Listener, error) {
	listener, err := tls.Listen("tcp", address, &tls.Config{
		GetCertificate: certificate,
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot listen for webhooks: %w", err)
	}
	return listener, nil
}
