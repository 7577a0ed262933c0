// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"fmt"
	"regexp"
	"strings"
)

const (
	dockerHub  = "docker.io"
	defaultTag = "latest"
	// maxRepository is the length that registries permit for a host and repository.
	maxRepository = 255
)

// The grammar is that of github.com/distribution/reference.
var (
	hostPattern   = regexp.MustCompile(`^(?:(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*|\[[a-fA-F0-9:]+\])(?::[0-9]{1,5})?$`)
	pathPattern   = regexp.MustCompile(`^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$`)
	tagPattern    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	digestPattern = regexp.MustCompile(`^sha256:[a-f0-9]{64}$`)
	hexPattern    = regexp.MustCompile(`^[a-f0-9]{64}$`)
)

// Name is the full name of an image.
type Name struct {
	// Registry is the host, with its port where it has one.
	Registry string
	// Repository is the path at the registry.
	Repository string
	// Tag is "" in a name with a digest and no tag.
	Tag string
	// Digest is sha256:HEX, or "".
	Digest string
}

// ParseName parses an image's name as in a Pod. The registry defaults to docker.io, a repository of
// one word there to library/, and the tag to latest. A name with a tag and a digest means the digest.
func ParseName(s string) (Name, error) {
	bad := func(format string, args ...any) (Name, error) {
		return Name{}, &Error{Kind: InvalidName, Name: abbreviate(s), Err: fmt.Errorf(format, args...)}
	}
	if s == "" {
		return bad("an image's name cannot be empty")
	}
	if len(s) > 512 {
		return bad("an image's name cannot have %d characters", len(s))
	}
	var n Name
	rest, digest, hasDigest := strings.Cut(s, "@")
	if hasDigest {
		if !digestPattern.MatchString(digest) {
			return bad("its digest must be sha256: and 64 lower-case hexadecimal digits")
		}
		n.Digest = digest
	}
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, '/') && i >= 0 {
		n.Tag = rest[i+1:]
		rest = rest[:i]
		if !tagPattern.MatchString(n.Tag) {
			return bad("its tag %q must have 1 to 128 letters, digits, and the characters _ . - (not first)", abbreviate(n.Tag))
		}
	} else if !hasDigest {
		n.Tag = defaultTag
	}
	first, path, ok := strings.Cut(rest, "/")
	if ok && (strings.ContainsAny(first, ".:") || first == "localhost" || strings.ToLower(first) != first) {
		n.Registry, n.Repository = first, path
	} else {
		n.Registry, n.Repository = dockerHub, rest
		if hexPattern.MatchString(rest) {
			return bad("64 hexadecimal digits are an ID and not a name")
		}
	}
	if n.Registry == "index.docker.io" || n.Registry == "registry-1.docker.io" {
		n.Registry = dockerHub
	}
	if n.Registry == dockerHub && !strings.Contains(n.Repository, "/") {
		n.Repository = "library/" + n.Repository
	}
	if !hostPattern.MatchString(n.Registry) {
		return bad("its registry %q is not a host name", abbreviate(n.Registry))
	}
	if !pathPattern.MatchString(n.Repository) {
		if strings.ToLower(n.Repository) != n.Repository {
			return bad("its repository %q must be lower-case", abbreviate(n.Repository))
		}
		return bad("its repository %q must consist of words of letters and digits, separated by one of . _ __ - /", abbreviate(n.Repository))
	}
	if len(n.Registry)+1+len(n.Repository) > maxRepository {
		return bad("its registry and repository have more than %d characters", maxRepository)
	}
	return n, nil
}

// String is the full name. ParseName parses it to the same Name.
func (n Name) String() string {
	s := n.Context()
	if n.Tag != "" {
		s += ":" + n.Tag
	}
	if n.Digest != "" {
		s += "@" + n.Digest
	}
	return s
}

// Context is the registry and repository.
func (n Name) Context() string { return n.Registry + "/" + n.Repository }

// Familiar is the name as people write it: without docker.io/ and library/.
func (n Name) Familiar() string {
	s := n.String()
	if n.Registry == dockerHub {
		s = strings.TrimPrefix(s, dockerHub+"/")
		s = strings.TrimPrefix(s, "library/")
	}
	return s
}

// key is the name under which the store keeps an image: a digest makes the tag meaningless.
func (n Name) key() Name {
	if n.Digest != "" {
		n.Tag = ""
	}
	return n
}

// withDigest names the same repository's content by its digest.
func (n Name) withDigest(digest string) Name {
	return Name{Registry: n.Registry, Repository: n.Repository, Digest: digest}
}

// reference is what follows the repository in a registry's URL of a manifest.
func (n Name) reference() string {
	if n.Digest != "" {
		return n.Digest
	}
	return n.Tag
}

// abbreviate keeps hostile text in messages short.
func abbreviate(s string) string {
	const most = 128
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strings.ToValidUTF8(s, "?")
}
