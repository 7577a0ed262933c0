// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"

	"diwan.dev/diwan/internal/platform/imagestore"
)

// home is the registry of names without one. No real registry is called so: a port is missing.
const home = "localhost"

// Name is the name of a version of a model.
type Name struct {
	// Registry is the host of the registry, with its port where it has one; "" is the home's own.
	Registry string
	// Repository is the path at the registry.
	Repository string
	// Tag is "" in a name with a digest.
	Tag string
	// Digest is that of a manifest, or "".
	Digest digest.Digest
}

// ParseName parses [HOST/]REPOSITORY[:TAG][@DIGEST]. Without a host it is in the home's registry, whatever
// it would mean to Docker; the tag defaults to latest. A digest makes the tag meaningless.
func ParseName(s string) (Name, error) {
	full := s
	if first, _, ok := strings.Cut(s, "/"); !ok || !strings.ContainsAny(first, ".:") && first != home {
		full = home + "/" + s
	}
	n, err := imagestore.ParseName(full)
	if err != nil {
		var e *imagestore.Error
		if errors.As(err, &e) {
			err = e.Err
		}
		return Name{}, fmt.Errorf("%q is not the name of a model: %w", s, err)
	}
	name := Name{Registry: n.Registry, Repository: n.Repository, Tag: n.Tag, Digest: digest.Digest(n.Digest)}
	if name.Registry == home {
		name.Registry = ""
	}
	if name.Digest != "" {
		name.Tag = ""
	}
	return name, nil
}

// String is the name. ParseName parses it to the same Name.
func (n Name) String() string {
	s := n.Repository
	if n.Registry != "" {
		s = n.Registry + "/" + s
	}
	if n.Digest != "" {
		return s + "@" + string(n.Digest)
	}
	return s + ":" + n.Tag
}

// Reference is what follows the repository in a registry's URL of a manifest.
func (n Name) Reference() string {
	if n.Digest != "" {
		return string(n.Digest)
	}
	return n.Tag
}

// At is the name at a registry: host is that of the home's own.
func (n Name) At(host string) Name {
	if n.Registry == "" {
		n.Registry = host
	}
	return n
}
