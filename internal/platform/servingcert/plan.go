// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/platform/pki"
)

// Keys of the Secret's data. Those of the certificate are Kubernetes' own.
const (
	keyBundle       = "ca.crt" // every authority that counts, the newest first
	keyAuthorityKey = "ca.key" // that of the newest
	keyCertificate  = corev1.TLSCertKey
	keyKey          = corev1.TLSPrivateKeyKey
)

// Lives of certificates, and how long before their ends they are recreated.
const (
	authorityLife, authorityMargin     = 5 * 365 * 24 * time.Hour, 365 * 24 * time.Hour
	certificateLife, certificateMargin = 90 * 24 * time.Hour, 30 * 24 * time.Hour
	// announced is how long a new CA is in the bundle before it signs the
	// serving certificate, so that every API server knows it by then.
	announced = time.Hour
	// lag is by how much a certificate begins before it is made (package pki).
	lag = time.Hour
)

// data is that of the Secret.
type data map[string][]byte

// renew returns the Secret's new content, which is have itself if that is
// still good.
func renew(have data, hosts []string, now time.Time) (data, error) {
	bundle := parseBundle(have[keyBundle], now)
	authority, err := pki.Parse(firstCertificate(bundle), have[keyAuthorityKey])
	if err != nil || now.Add(authorityMargin).After(authority.Certificate.NotAfter) {
		if authority, err = pki.NewAuthority("diwan-webhooks", now, authorityLife); err != nil {
			return nil, err
		}
		bundle = slices.Insert(bundle, 0, authority.Certificate)
	}
	request := pki.Request{Name: hosts[0], Hosts: hosts, From: now, Life: certificateLife}
	served, err := pki.Parse(have[keyCertificate], have[keyKey])
	if err != nil || !good(served.Certificate, bundle, request, now) {
		if served, err = authority.Sign(request); err != nil {
			return nil, err
		}
	}
	return encode(have, bundle, authority, served)
}

// good reports whether what is served may stay: it serves the hosts, lasts,
// and is signed by the newest authority. One that an older authority signed
// stays until the newest is known everywhere, if it lasts so long.
func good(served *x509.Certificate, bundle []*x509.Certificate, request pki.Request, now time.Time) bool {
	by := slices.IndexFunc(bundle, func(authority *x509.Certificate) bool {
		return (&pki.Pair{Certificate: authority}).Vouches(served, request)
	})
	settled := now.Sub(bundle[0].NotBefore.Add(lag)) >= announced
	switch {
	case by < 0:
		return false
	case by > 0 && !settled:
		return now.Add(2 * announced).Before(served.NotAfter)
	}
	return by == 0 && now.Add(certificateMargin).Before(served.NotAfter)
}

// encode returns the data, have where nothing changed.
func encode(have data, bundle []*x509.Certificate, authority, served *pki.Pair) (data, error) {
	want := data{keyCertificate: served.CertificatePEM()}
	for _, c := range bundle {
		want[keyBundle] = append(want[keyBundle], pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	var err error
	if want[keyAuthorityKey], err = authority.KeyPEM(); err != nil {
		return nil, err
	}
	if want[keyKey], err = served.KeyPEM(); err != nil {
		return nil, err
	}
	for key, value := range want {
		if !bytes.Equal(have[key], value) {
			return want, nil
		}
	}
	return have, nil
}

// parseBundle reads the authorities that have not ended. What cannot be read is
// left out.
func parseBundle(text []byte, now time.Time) []*x509.Certificate {
	var bundle []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && c.IsCA && now.Before(c.NotAfter) {
			bundle = append(bundle, c)
		}
	}
	return bundle
}

func firstCertificate(bundle []*x509.Certificate) []byte {
	if len(bundle) == 0 {
		return nil
	}
	return (&pki.Pair{Certificate: bundle[0]}).CertificatePEM()
}

// ends is when what is served ends, for logs.
func (d data) ends() string {
	pair, err := pki.Parse(d[keyCertificate], d[keyKey])
	if err != nil {
		return fmt.Sprintf("never: %v", err)
	}
	return pair.Certificate.NotAfter.Format(time.RFC3339)
}
