// SPDX-License-Identifier: Apache-2.0

package localcluster

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
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Certificates live for a year and are made again at a start in the last
// month; the authority lives for ten.
const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	renewBefore     = 30 * 24 * time.Hour
)

// pki makes and keeps the keys of one cluster under a directory that the
// user alone can read.
type pki struct {
	dir  string
	ca   *x509.Certificate
	key  crypto.Signer
	time func() time.Time
}

// openPKI reads the authority in dir, or makes one.
func openPKI(dir string, now func() time.Time) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create %s: %w", dir, err)
	}
	p := &pki{dir: dir, time: now}
	pair, err := p.load("ca")
	if err != nil {
		return nil, err
	}
	if pair == nil {
		template := p.template(pkix.Name{CommonName: "diwan"}, authorityLife)
		template.IsCA, template.BasicConstraintsValid = true, true
		template.KeyUsage |= x509.KeyUsageCertSign
		if pair, err = p.create("ca", template); err != nil {
			return nil, err
		}
	}
	p.ca, p.key = pair.Leaf, pair.PrivateKey.(crypto.Signer)
	return p, nil
}

// file is the path of a pair: certificate and key in one file, so that both
// are replaced in one step.
func (p *pki) file(name string) string { return filepath.Join(p.dir, name+".pem") }

// authority is the certificate of the authority, PEM encoded.
func (p *pki) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.ca.Raw})
}

// client makes sure of a pair that authenticates user as a member of groups.
func (p *pki) client(name, user string, groups ...string) error {
	template := p.template(pkix.Name{CommonName: user, Organization: groups}, certificateLife)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return p.ensure(name, template)
}

// server makes sure of a pair for a server that answers to hosts, names or
// addresses.
func (p *pki) server(name string, hosts ...string) error {
	template := p.template(pkix.Name{CommonName: name}, certificateLife)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return p.ensure(name, template)
}

// signingKey makes sure of a bare key and returns its path.
func (p *pki) signingKey(name string) (string, error) {
	path := p.file(name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("cannot make the key %s: %w", name, err)
	}
	text, err := encodeKey(key)
	if err != nil {
		return "", err
	}
	return path, writeFile(path, text, 0o600)
}

func (p *pki) template(subject pkix.Name, life time.Duration) *x509.Certificate {
	now := p.time()
	return &x509.Certificate{
		Subject:   subject,
		NotBefore: now.Add(-time.Hour),
		NotAfter:  now.Add(life),
		KeyUsage:  x509.KeyUsageDigitalSignature,
	}
}

// ensure keeps the pair on disk when it is still good for template.
func (p *pki) ensure(name string, template *x509.Certificate) error {
	pair, err := p.load(name)
	if err != nil {
		return err
	}
	if pair != nil && p.good(pair.Leaf, template) {
		return nil
	}
	_, err = p.create(name, template)
	return err
}

func (p *pki) good(have, want *x509.Certificate) bool {
	if have.CheckSignatureFrom(p.ca) != nil || have.Subject.CommonName != want.Subject.CommonName {
		return false
	}
	for _, name := range want.DNSNames {
		if have.VerifyHostname(name) != nil {
			return false
		}
	}
	for _, ip := range want.IPAddresses {
		if have.VerifyHostname(ip.String()) != nil {
			return false
		}
	}
	return true
}

// load reads a pair; nil where there is none or it ends soon.
func (p *pki) load(name string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(p.file(name), p.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate %s: %w; remove %s to have new ones made", p.file(name), err, p.dir)
	}
	if p.time().Add(renewBefore).After(pair.Leaf.NotAfter) {
		return nil, nil
	}
	return &pair, nil
}

// create signs template, by itself where it is the authority, and stores it.
func (p *pki) create(name string, template *x509.Certificate) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make the key %s: %w", name, err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, fmt.Errorf("cannot make the certificate %s: %w", name, err)
	}
	parent, signer := p.ca, p.key
	if parent == nil || template.IsCA {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("cannot make the certificate %s: %w", name, err)
	}
	keyText, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyText...)
	if err := writeFile(p.file(name), text, 0o600); err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, fmt.Errorf("cannot make the certificate %s: %w", name, err)
	}
	return &pair, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
