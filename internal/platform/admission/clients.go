// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// VerifyClients has a server verify the certificates of clients that present one:
// one of the authorities vouches for it, and it bears one of the names, if there
// are any. Who presents none is let in, to what [RequireClient] does not guard.
func VerifyClients(config *tls.Config, authorities *x509.CertPool, names ...string) {
	config.ClientAuth, config.ClientCAs = tls.VerifyClientCertIfGiven, authorities
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 || len(names) == 0 {
			return nil
		}
		if name := state.PeerCertificates[0].Subject.CommonName; !slices.Contains(names, name) {
			return fmt.Errorf("the client's certificate is that of %q, want %s", name, strings.Join(names, " or "))
		}
		return nil
	}
}

// RequireClient lets in only clients whose certificate was verified.
func RequireClient(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			http.Error(w, "a client certificate of the API server is required", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	})
}
