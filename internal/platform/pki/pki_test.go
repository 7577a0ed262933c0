// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"testing"
	"time"
)

const year = 365 * 24 * time.Hour

// TestSigned has Go's own verification look at what is signed.
func TestSigned(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	authority, err := NewAuthority("a", now, 10*year)
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewAuthority("a", now, 10*year)
	if err != nil {
		t.Fatal(err)
	}
	server := Request{Name: "s", Hosts: []string{"127.0.0.1", "s.example.svc"}, From: now, Life: year}
	client := Request{Name: "c", Groups: []string{"g"}, From: now, Life: year}
	for name, c := range map[string]struct {
		reason  string
		request Request
		by      *Pair
		usage   x509.ExtKeyUsage
		host    string
		at      time.Time
		ok      bool
	}{
		"Name":    {"a server by its name", server, authority, x509.ExtKeyUsageServerAuth, "s.example.svc", now, true},
		"Address": {"a server by its address", server, authority, x509.ExtKeyUsageServerAuth, "127.0.0.1", now, true},
		"Other":   {"a server by another name", server, authority, x509.ExtKeyUsageServerAuth, "t.example.svc", now, false},
		"Lag":     {"a clock that lags half an hour", server, authority, x509.ExtKeyUsageServerAuth, "127.0.0.1", now.Add(-time.Hour / 2), true},
		"Over":    {"a certificate that has ended", server, authority, x509.ExtKeyUsageServerAuth, "127.0.0.1", now.Add(year + time.Hour), false},
		"Client":  {"a client", client, authority, x509.ExtKeyUsageClientAuth, "", now, true},
		"Server":  {"a client that would be a server", client, authority, x509.ExtKeyUsageServerAuth, "", now, false},
		"Forged":  {"an authority that only bears the name", client, other, x509.ExtKeyUsageClientAuth, "", now, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			signed, err := c.by.Sign(c.request)
			if err != nil {
				t.Fatal(err)
			}
			key, err := signed.KeyPEM()
			if err != nil {
				t.Fatal(err)
			}
			pair, err := Parse(signed.CertificatePEM(), key)
			if err != nil {
				t.Fatal(err)
			}
			roots := x509.NewCertPool()
			roots.AddCert(authority.Certificate)
			_, err = pair.Certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: c.host, CurrentTime: c.at, KeyUsages: []x509.ExtKeyUsage{c.usage}})
			if (err == nil) != c.ok {
				t.Errorf("%s: got %v", c.reason, err)
			}
			if got := authority.Vouches(pair.Certificate, c.request); got != (c.by == authority) {
				t.Errorf("%s: vouches is %v", c.reason, got)
			}
		})
	}
}

// TestForeignPairs refuses what is no pair.
func TestForeignPairs(t *testing.T) {
	t.Parallel()
	a, err := NewAuthority("a", time.Now(), year)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewAuthority("b", time.Now(), year)
	if err != nil {
		t.Fatal(err)
	}
	key, err := b.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	for _, certificate := range [][]byte{nil, []byte("x"), a.CertificatePEM()} {
		if _, err := Parse(certificate, key); err == nil {
			t.Errorf("the key of another is taken for that of %.40q", certificate)
		}
	}
	if a.Vouches(b.Certificate, Request{Name: "b"}) {
		t.Error("one authority vouches for another")
	}
}
