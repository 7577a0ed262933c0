// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	certificates "diwan.dev/diwan/internal/platform/pki"
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
	ca   *certificates.Pair
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
		if pair, err = certificates.NewAuthority("diwan", p.time(), authorityLife); err != nil {
			return nil, err
		}
		if err := p.store("ca", pair); err != nil {
			return nil, err
		}
	}
	p.ca = pair
	return p, nil
}

// file is the path of a pair: certificate and key in one file, so that both
// are replaced in one step.
func (p *pki) file(name string) string { return filepath.Join(p.dir, name+".pem") }

// authority is the certificate of the authority, PEM encoded.
func (p *pki) authority() []byte { return p.ca.CertificatePEM() }

// pool has the authority alone.
func (p *pki) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(p.ca.Certificate)
	return pool
}

// client makes sure of a pair that authenticates user as a member of groups.
func (p *pki) client(name, user string, groups ...string) error {
	return p.ensure(name, certificates.Request{Name: user, Groups: groups, From: p.time(), Life: certificateLife})
}

// server makes sure of a pair for a server that answers to hosts, names or
// addresses.
func (p *pki) server(name string, hosts ...string) error {
	return p.ensure(name, certificates.Request{Name: name, Hosts: hosts, From: p.time(), Life: certificateLife})
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
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return "", fmt.Errorf("cannot encode the key %s: %w", name, err)
	}
	return path, writeFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

// ensure keeps the pair on disk when it is still good for the request.
func (p *pki) ensure(name string, request certificates.Request) error {
	pair, err := p.load(name)
	if err != nil {
		return err
	}
	if pair != nil && p.ca.Vouches(pair.Certificate, request) {
		return nil
	}
	if pair, err = p.ca.Sign(request); err != nil {
		return err
	}
	return p.store(name, pair)
}

// load reads a pair; nil where there is none or it ends soon.
func (p *pki) load(name string) (*certificates.Pair, error) {
	text, err := os.ReadFile(p.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var pair *certificates.Pair
	if err == nil {
		pair, err = certificates.Parse(text, text)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate %s: %w; remove %s to have new ones made", p.file(name), err, p.dir)
	}
	if p.time().Add(renewBefore).After(pair.Certificate.NotAfter) {
		return nil, nil
	}
	return pair, nil
}

func (p *pki) store(name string, pair *certificates.Pair) error {
	key, err := pair.KeyPEM()
	if err != nil {
		return err
	}
	return writeFile(p.file(name), append(pair.CertificatePEM(), key...), 0o600)
}
