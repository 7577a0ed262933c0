// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"net/http"
	"strings"
)

// Digest names content by its hash: "sha256:" or "sha512:" and the hash in
// lower-case hexadecimal digits.
type Digest string

// algorithms are the hash functions, all of which the OCI image specification
// registers. Their state can be stored: they are encoding.BinaryMarshaler.
var algorithms = map[string]func() hash.Hash{
	"sha256": sha256.New,
	"sha512": sha512.New,
}

const canonical = "sha256"

// ParseDigest checks the form of a digest.
func ParseDigest(s string) (Digest, error) {
	algorithm, digits, _ := strings.Cut(s, ":")
	newHash, ok := algorithms[algorithm]
	if !ok {
		return "", fail(http.StatusBadRequest, DigestInvalid, "%.80q is not a digest sha256:… or sha512:…", s)
	}
	if len(digits) != hex.EncodedLen(newHash().Size()) || strings.Trim(digits, "0123456789abcdef") != "" {
		return "", fail(http.StatusBadRequest, DigestInvalid, "%.160q does not have the length or the lower-case hexadecimal digits of a %s digest", s, algorithm)
	}
	return Digest(s), nil
}

// FromBytes returns the sha256 digest of data.
func FromBytes(data []byte) Digest { return digestOf(canonical, data) }

func digestOf(algorithm string, data []byte) Digest {
	h := algorithms[algorithm]()
	h.Write(data)
	return sum(algorithm, h)
}

func sum(algorithm string, h hash.Hash) Digest {
	return Digest(algorithm + ":" + hex.EncodeToString(h.Sum(nil)))
}

// The digests that reach these two were checked by ParseDigest.
func (d Digest) algorithm() string { a, _, _ := strings.Cut(string(d), ":"); return a }
func (d Digest) hex() string       { _, h, _ := strings.Cut(string(d), ":"); return h }
