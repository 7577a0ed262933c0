// SPDX-License-Identifier: Apache-2.0

package imagepush

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"diwan.dev/diwan/internal/platform/imagestore"
)

// Host is how a registry is reached.
type Host struct {
	// Transport reaches it, with the user's authorities, and without TLS only where that is allowed.
	Transport http.RoundTripper
	// Options are those for names at the registry.
	Options []name.Option
	// Loopback: it is on this machine.
	Loopback bool
}

// Reach returns how a registry is reached by the rules for pulls: without TLS only on
// loopback addresses, and where the user says so.
func Reach(registries imagestore.Registries, registry string) (Host, error) {
	t := remote.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	h := Host{Transport: t, Options: []name.Option{name.StrictValidation}, Loopback: isLoopback(registry)}
	plain := h.Loopback
	for _, r := range registries.Registries {
		if r.Host != registry {
			continue
		}
		plain = r.PlainHTTP || plain && r.CA == "" && !r.SkipVerify
		t.TLSClientConfig.InsecureSkipVerify = r.SkipVerify //nolint:gosec // the user asked for it by name
		if r.CA == "" {
			continue
		}
		pem, err := os.ReadFile(r.CA)
		if err != nil {
			return h, fmt.Errorf("cannot read the authorities of %s: %w", registry, err)
		}
		if t.TLSClientConfig.RootCAs, err = x509.SystemCertPool(); err != nil {
			t.TLSClientConfig.RootCAs = x509.NewCertPool()
		}
		t.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem)
	}
	if plain {
		h.Options = append(h.Options, name.Insecure)
	} else {
		h.Transport = onlyTLS{t}
	}
	return h, nil
}

// onlyTLS keeps credentials from being sent without TLS, which go-containerregistry
// tries with private addresses.
type onlyTLS struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t onlyTLS) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" {
		return nil, fmt.Errorf("%s is not asked without TLS: if it speaks none, say plainHTTP in registries.yaml", req.URL.Host)
	}
	return t.RoundTripper.RoundTrip(req)
}

// isLoopback reports whether a registry is on this machine by its very name.
func isLoopback(registry string) bool {
	host := registry
	if name, _, err := net.SplitHostPort(registry); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && ip.IsLoopback()
}
