// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"diwan.dev/diwan/internal/platform/pki"
)

// TestWebhookClients connects to the webhooks with certificates of an authority
// that is replaced meanwhile.
func TestWebhookClients(t *testing.T) {
	t.Parallel()
	authority := func() *pki.Pair {
		a, err := pki.NewAuthority("authority", time.Now(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	certificate := func(by *pki.Pair, name string, hosts ...string) *tls.Certificate {
		pair, err := by.Sign(pki.Request{Name: name, Hosts: hosts, From: time.Now(), Life: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		key, err := pair.KeyPEM()
		if err != nil {
			t.Fatal(err)
		}
		c, err := tls.X509KeyPair(pair.CertificatePEM(), key)
		if err != nil {
			t.Fatal(err)
		}
		return &c
	}
	first, second := authority(), authority()
	file := filepath.Join(t.TempDir(), "ca.crt")
	trust := func(a *pki.Pair) {
		if err := os.WriteFile(file, a.CertificatePEM(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	trust(first)
	f := webhookFlags{address: "127.0.0.1:0", clientCA: file, clientNames: []string{"kube-apiserver"}}
	serving := certificate(first, "webhooks", "127.0.0.1")
	listener, err := f.listen(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return serving, nil })
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error)
	go func() {
		defer close(accepted)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			err = conn.(*tls.Conn).Handshake()
			conn.Close()
			accepted <- err
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-accepted
	})
	roots := x509.NewCertPool()
	roots.AddCert(first.Certificate)
	try := func(with *tls.Certificate) error {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		config := &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return with, nil }
		client := tls.Client(conn, config)
		go client.Handshake() //nolint:errcheck // what the server says counts
		return <-accepted
	}
	if err := try(certificate(first, "kube-apiserver")); err != nil {
		t.Errorf("the API server is refused: %v", err)
	}
	if err := try(certificate(first, "mallory")); err == nil || !strings.Contains(err.Error(), "mallory") {
		t.Errorf("another name of the authority: %v", err)
	}
	if err := try(certificate(second, "kube-apiserver")); err == nil {
		t.Error("another authority is accepted")
	}
	trust(second)
	if err := try(certificate(second, "kube-apiserver")); err != nil {
		t.Errorf("the authority that was put in its place: %v", err)
	}
	f.clientCA = file + ".none"
	if _, err := f.listen(nil); err == nil {
		t.Error("it listens without the authorities")
	}
}
