// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Registries says how registries are reached. The zero value reaches each at its own name by TLS,
// with the system's authorities.
//
// In a file:
//
//	mirrors:                            # the longest prefix that matches counts
//	- prefix: docker.io/library         # a registry, or some of its repositories
//	  endpoints: [mirror.corp.example/hub, localhost:5000]  # in this order, then the original
//	registries:
//	- host: mirror.corp.example
//	  ca: corp-ca.pem                   # relative to this file; in addition to the system's
//	- host: 10.0.0.7:5000
//	  plainHTTP: true
//	- host: old.corp.example
//	  skipVerify: true                  # accepts any certificate
//
// An endpoint's path, if it has one, comes before the repository that is asked for.
type Registries struct {
	Mirrors    []Mirror   `yaml:"mirrors"`
	Registries []Registry `yaml:"registries"`
}

// Mirror lists where else images of a registry are.
type Mirror struct {
	// Prefix is a registry, or a registry and the first words of repositories.
	Prefix string `yaml:"prefix"`
	// Endpoints are host[:port][/path], tried in this order before the original.
	Endpoints []string `yaml:"endpoints"`
}

// Registry says how one registry is reached.
type Registry struct {
	// Host is the host, with the port if names have one.
	Host string `yaml:"host"`
	// CA is a file of PEM certificates of further authorities.
	CA string `yaml:"ca"`
	// PlainHTTP speaks HTTP without TLS.
	PlainHTTP bool `yaml:"plainHTTP"`
	// SkipVerify accepts any certificate.
	SkipVerify bool `yaml:"skipVerify"`

	authorities *x509.CertPool
}

// maxRegistriesFile bounds the file.
const maxRegistriesFile = 1 << 20

// ReadRegistries reads registries.yaml. A file that does not exist is the zero value. Errors name the
// file and the line.
func ReadRegistries(path string) (Registries, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Registries{}, nil
	}
	if err != nil {
		return Registries{}, fmt.Errorf("cannot read the registries: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRegistriesFile+1))
	if err != nil {
		return Registries{}, fmt.Errorf("cannot read the registries: %w", err)
	}
	if len(b) > maxRegistriesFile {
		return Registries{}, fmt.Errorf("cannot read the registries: %s has more than %d bytes", path, maxRegistriesFile)
	}
	r, err := parseRegistries(b, filepath.Dir(path))
	if err != nil {
		return Registries{}, fmt.Errorf("cannot read the registries in %s: %w", path, err)
	}
	return r, nil
}

// parseRegistries parses a file that is in dir.
func parseRegistries(b []byte, dir string) (Registries, error) {
	var doc yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(string(b)))
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return Registries{}, nil
	case err != nil:
		return Registries{}, err
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return Registries{}, errors.New("it has more than one YAML document")
	}
	var r Registries
	strict := yaml.NewDecoder(strings.NewReader(string(b)))
	strict.KnownFields(true)
	if err := strict.Decode(&r); err != nil {
		return Registries{}, err
	}
	if err := r.check(lines{&doc}, dir); err != nil {
		return Registries{}, err
	}
	return r, nil
}

// lines finds where something is in a document.
type lines struct{ doc *yaml.Node }

// of is the line of the i-th element of a list, and of a field of it.
func (l lines) of(list string, i int, field string) int {
	n := l.doc.Content[0]
	for k := 0; k+1 < len(n.Content); k += 2 {
		if n.Content[k].Value != list || i >= len(n.Content[k+1].Content) {
			continue
		}
		item := n.Content[k+1].Content[i]
		for f := 0; f+1 < len(item.Content); f += 2 {
			if item.Content[f].Value == field {
				return item.Content[f].Line
			}
		}
		return item.Line
	}
	return n.Line
}

func (r *Registries) check(l lines, dir string) error {
	seen := make(map[string]bool)
	for i, m := range r.Mirrors {
		host, path, _ := strings.Cut(m.Prefix, "/")
		if !hostPattern.MatchString(host) || path != "" && !pathPattern.MatchString(path) || strings.HasSuffix(m.Prefix, "/") {
			return fmt.Errorf("line %d: prefix %q must be a registry, or a registry and a repository's first words", l.of("mirrors", i, "prefix"), abbreviate(m.Prefix))
		}
		if seen["mirror "+m.Prefix] {
			return fmt.Errorf("line %d: the prefix %s is listed twice", l.of("mirrors", i, "prefix"), m.Prefix)
		}
		seen["mirror "+m.Prefix] = true
		if len(m.Endpoints) == 0 {
			return fmt.Errorf("line %d: the mirror of %s needs endpoints", l.of("mirrors", i, "endpoints"), m.Prefix)
		}
		for _, e := range m.Endpoints {
			host, path, slash := strings.Cut(e, "/")
			if strings.Contains(e, "://") {
				return fmt.Errorf("line %d: the endpoint %q must be a host without a scheme; plain HTTP is set for the host under registries", l.of("mirrors", i, "endpoints"), abbreviate(e))
			}
			if !hostPattern.MatchString(host) || slash && !pathPattern.MatchString(path) {
				return fmt.Errorf("line %d: the endpoint %q must be a host, or a host and a path", l.of("mirrors", i, "endpoints"), abbreviate(e))
			}
		}
	}
	for i := range r.Registries {
		reg := &r.Registries[i]
		if !hostPattern.MatchString(reg.Host) {
			return fmt.Errorf("line %d: host %q must be a host name, with a port where names have one", l.of("registries", i, "host"), abbreviate(reg.Host))
		}
		if seen["registry "+reg.Host] {
			return fmt.Errorf("line %d: the registry %s is listed twice", l.of("registries", i, "host"), reg.Host)
		}
		seen["registry "+reg.Host] = true
		if reg.PlainHTTP && (reg.SkipVerify || reg.CA != "") {
			return fmt.Errorf("line %d: the registry %s cannot have plainHTTP together with ca or skipVerify", l.of("registries", i, "plainHTTP"), reg.Host)
		}
		if reg.CA == "" {
			continue
		}
		if !filepath.IsAbs(reg.CA) {
			reg.CA = filepath.Join(dir, reg.CA)
		}
		if err := reg.readCA(); err != nil {
			return fmt.Errorf("line %d: cannot read the authorities of %s: %w", l.of("registries", i, "ca"), reg.Host, err)
		}
	}
	return nil
}

func (r *Registry) readCA() error {
	info, err := os.Stat(r.CA)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxRegistriesFile {
		return fmt.Errorf("%s must be a file of at most %d bytes", r.CA, maxRegistriesFile)
	}
	b, err := os.ReadFile(r.CA)
	if err != nil {
		return err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(b) {
		return fmt.Errorf("%s has no PEM certificate", r.CA)
	}
	r.authorities = pool
	return nil
}

// endpoint is where a repository is.
type endpoint struct {
	// host is the registry as its user writes it.
	host string
	// base is the URL up to and without /v2/.
	base string
	// repository is the path there.
	repository string
	tls        *tls.Config
	mirror     bool
}

// Repositories are the repositories HOST/PATH where to look for a name, in this order: its mirrors, and
// its own.
func (r *Registries) Repositories(n Name) []string {
	var all []string
	for _, e := range r.endpoints(n) {
		all = append(all, e.host+"/"+e.repository)
	}
	return all
}

// endpoints are where to look for an image, in this order.
func (r *Registries) endpoints(n Name) []endpoint {
	var best *Mirror
	for i, m := range r.Mirrors {
		if (n.Context() == m.Prefix || strings.HasPrefix(n.Context(), m.Prefix+"/")) && (best == nil || len(m.Prefix) > len(best.Prefix)) {
			best = &r.Mirrors[i]
		}
	}
	var all []endpoint
	if best != nil {
		for _, e := range best.Endpoints {
			host, path, ok := strings.Cut(e, "/")
			repository := n.Repository
			if ok {
				repository = path + "/" + repository
			}
			ep := r.endpoint(host, repository)
			ep.mirror = true
			all = append(all, ep)
		}
	}
	return append(all, r.endpoint(n.Registry, n.Repository))
}

func (r *Registries) endpoint(host, repository string) endpoint {
	e := endpoint{host: host, base: "https://" + host, repository: repository, tls: &tls.Config{MinVersion: tls.VersionTLS12}}
	if host == dockerHub {
		e.base = "https://registry-1.docker.io"
	}
	if isLoopback(host) {
		e.base = "http://" + host
	}
	for i := range r.Registries {
		reg := &r.Registries[i]
		if reg.Host != host {
			continue
		}
		switch {
		case reg.PlainHTTP:
			e.base = "http://" + host
		case reg.CA != "" || reg.SkipVerify: // of a loopback address, too
			e.base = "https://" + host
			e.tls.RootCAs = reg.authorities
			e.tls.InsecureSkipVerify = reg.SkipVerify //nolint:gosec // the user asked for it by name
		}
	}
	return e
}

// isLoopback reports whether a host is this machine by its very name.
func isLoopback(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if name == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil && addr.IsLoopback()
}
