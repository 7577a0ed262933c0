// SPDX-License-Identifier: Apache-2.0

// Package pki creates the certificates with which the components of an installation authenticate to each other: a
// self-signed CA, and the server and client certificates that it signs.
//
//	authority, err := pki.NewAuthority("diwan", now, 10*365*24*time.Hour)
//	server, err := authority.Sign(pki.Request{Name: "webhooks", Hosts: []string{"127.0.0.1"}, From: now, Life: year})
//
// Where pairs are kept, and when they are recreated, is for callers.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Pair is a certificate and its private key, which is ECDSA on P-256.
type Pair struct {
	Certificate *x509.Certificate
	Key         crypto.Signer
}

// Request specifies a certificate.
type Request struct {
	// Name is the server's name, or the client's user name.
	Name string
	// Groups are those that the client is a member of.
	Groups []string
	// Hosts are the names and addresses at which a server answers. Without any
	// the certificate is a client's.
	Hosts []string
	// From is now; the certificate begins an hour before, for clocks that lag.
	From time.Time
	// Life is how long it lasts from then.
	Life time.Duration
}

// NewAuthority makes an authority, which signs itself.
func NewAuthority(name string, from time.Time, life time.Duration) (*Pair, error) {
	template := Request{Name: name, From: from, Life: life}.template()
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	template.ExtKeyUsage = nil
	return create(template, nil)
}

// Sign makes a pair that the authority p vouches for.
func (p *Pair) Sign(r Request) (*Pair, error) { return create(r.template(), p) }

// Vouches reports whether have is signed by the authority p, and good for what
// the request asks, whatever its times are.
func (p *Pair) Vouches(have *x509.Certificate, r Request) bool {
	if have.CheckSignatureFrom(p.Certificate) != nil || have.Subject.CommonName != r.Name {
		return false
	}
	for _, host := range r.Hosts {
		if have.VerifyHostname(host) != nil {
			return false
		}
	}
	return true
}

func (r Request) template() *x509.Certificate {
	t := &x509.Certificate{
		Subject:     pkix.Name{CommonName: r.Name, Organization: r.Groups},
		NotBefore:   r.From.Add(-time.Hour),
		NotAfter:    r.From.Add(r.Life),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if len(r.Hosts) > 0 {
		t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	for _, host := range r.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, host)
		}
	}
	return t
}

// create signs template, self-signed without a CA.
func create(template *x509.Certificate, authority *Pair) (*Pair, error) {
	fail := func(err error) (*Pair, error) {
		return nil, fmt.Errorf("cannot create the certificate of %q: %w", template.Subject.CommonName, err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return fail(err)
	}
	parent, signer := template, crypto.Signer(key)
	if authority != nil {
		parent, signer = authority.Certificate, authority.Key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return fail(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return fail(err)
	}
	return &Pair{Certificate: certificate, Key: key}, nil
}

// Parse reads a pair from PEM, its first certificate being meant.
func Parse(certificate, key []byte) (*Pair, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("cannot read a certificate and its key: %w", err)
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("cannot read a certificate and its key: the key cannot sign")
	}
	return &Pair{Certificate: pair.Leaf, Key: signer}, nil
}

// CertificatePEM encodes the certificate.
func (p *Pair) CertificatePEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate.Raw})
}

// KeyPEM encodes the private key.
func (p *Pair) KeyPEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(p.Key)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the key of %q: %w", p.Certificate.Subject.CommonName, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
