// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"diwan.dev/diwan/internal/platform/pki"
)

// TestOnlyTheAPIServerIsAnswered tries a server's guarded and open paths with
// certificates of several kinds.
func TestOnlyTheAPIServerIsAnswered(t *testing.T) {
	t.Parallel()
	authority := func() *pki.Pair {
		a, err := pki.NewAuthority("authority", time.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	ours, others := authority(), authority()
	pool := x509.NewCertPool()
	pool.AddCert(ours.Certificate)
	mux := http.NewServeMux()
	mux.Handle("/guarded", RequireClient(http.NotFoundHandler()))
	mux.Handle("/open", http.NotFoundHandler())
	s := httptest.NewUnstartedServer(mux)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{}
	VerifyClients(s.TLS, pool, "kube-apiserver")
	s.StartTLS()
	t.Cleanup(s.Close)
	for name, c := range map[string]struct {
		reason        string
		by            *pki.Pair
		name          string
		guarded, open int // 0: no connection
	}{
		"None":    {"without a certificate only what is open answers", nil, "", http.StatusUnauthorized, http.StatusNotFound},
		"Server":  {"the API server is answered", ours, "kube-apiserver", http.StatusNotFound, http.StatusNotFound},
		"Another": {"another name of the same authority is not", ours, "mallory", 0, 0},
		"Forged":  {"nor is one of another authority", others, "kube-apiserver", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
			if c.by != nil {
				pair, err := c.by.Sign(pki.Request{Name: c.name, From: time.Now(), Life: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				key, err := pair.KeyPEM()
				if err != nil {
					t.Fatal(err)
				}
				certificate, err := tls.X509KeyPair(pair.CertificatePEM(), key)
				if err != nil {
					t.Fatal(err)
				}
				config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }
			}
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
			for path, want := range map[string]int{"/guarded": c.guarded, "/open": c.open} {
				response, err := client.Get(s.URL + path)
				got := 0
				if err == nil {
					got = response.StatusCode
					response.Body.Close()
				}
				if got != want {
					t.Errorf("%s: %s answers %d (%v), want %d", c.reason, path, got, err, want)
				}
			}
		})
	}
}
