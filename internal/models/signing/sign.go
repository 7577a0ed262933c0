// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"diwan.dev/diwan/internal/models/store"
	"diwan.dev/diwan/internal/models/transfer"
	"diwan.dev/diwan/internal/platform/imagepush"
)

const (
	payloadType   = types.MediaType("application/vnd.dev.cosign.simplesigning.v1+json")
	payloadClaim  = "cosign container image signature" // whatever was signed
	annotationSig = "dev.cosignproject.cosign/signature"
	// maxSignatures and maxPayload bound what is read of hostile registries.
	maxSignatures = 100
	maxPayload    = 1 << 20
)

// ErrUnsigned is wrapped by errors about models without a signature of the key.
var ErrUnsigned = errors.New("there is no valid signature by this key")

// payload is the document that is signed.
type payload struct {
	Critical struct {
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
	Optional map[string]any `json:"optional"`
}

// Signature is a valid signature.
type Signature struct {
	// Digest is the manifest that was signed, Reference the repository that the signer named.
	Digest    string `json:"digest"`
	Reference string `json:"reference"`
	// Annotations are what the signer added.
	Annotations map[string]any `json:"annotations,omitempty"`
}

// place is where the signatures of a model are.
type place struct {
	digest  name.Digest
	tag     name.Tag
	options []remote.Option
}

func find(ctx context.Context, n store.Name, o transfer.Options) (place, error) {
	reached, err := imagepush.Reach(o.Registries, n.Registry)
	if err != nil {
		return place{}, err
	}
	m, _, err := transfer.Inspect(ctx, n, o)
	if err != nil {
		return place{}, err
	}
	repo, err := name.NewRepository(n.Registry+"/"+n.Repository, reached.Options...)
	if err != nil {
		return place{}, err
	}
	p := place{digest: repo.Digest(string(m.Digest)), tag: repo.Tag("sha256-" + m.Digest.Encoded() + ".sig")}
	p.options = []remote.Option{remote.WithContext(ctx), remote.WithTransport(reached.Transport), remote.WithUserAgent("diwan")}
	if o.Keychain != nil {
		p.options = append(p.options, remote.WithAuthFromKeychain(o.Keychain))
	}
	return p, nil
}

// Sign adds a signature to a model at a registry, and returns the digest of the manifest that it is for.
// Signatures by others remain.
func Sign(ctx context.Context, n store.Name, key *ecdsa.PrivateKey, annotations map[string]string, o transfer.Options) (string, error) {
	digest, err := sign(ctx, n, key, annotations, o)
	if err != nil {
		return "", fmt.Errorf("cannot sign %s: %w", n, err)
	}
	return digest, nil
}

func sign(ctx context.Context, n store.Name, key *ecdsa.PrivateKey, annotations map[string]string, o transfer.Options) (string, error) {
	p, err := find(ctx, n, o)
	if err != nil {
		return "", err
	}
	var doc payload
	doc.Critical.Identity.Reference = p.digest.Context().Name()
	doc.Critical.Image.Digest = p.digest.DigestStr()
	doc.Critical.Type = payloadClaim
	for k, v := range annotations {
		if doc.Optional == nil {
			doc.Optional = map[string]any{}
		}
		doc.Optional[k] = v
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		return "", err
	}
	signed, err := remote.Image(p.tag, p.options...)
	if missing(err) {
		signed = mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	} else if err != nil {
		return "", fmt.Errorf("cannot read the signatures that are there: %w", err)
	}
	signed, err = mutate.Append(signed, mutate.Addendum{
		Layer: static.NewLayer(text, payloadType), MediaType: payloadType,
		Annotations: map[string]string{annotationSig: base64.StdEncoding.EncodeToString(signature)},
	})
	if err != nil {
		return "", err
	}
	return p.digest.DigestStr(), remote.Write(p.tag, signed, p.options...)
}

func missing(err error) bool {
	var te *transport.Error
	return errors.As(err, &te) && te.StatusCode == http.StatusNotFound
}

// Verify returns the valid signatures of a model at a registry by a key that have the annotations. If there is
// none, the error wraps [ErrUnsigned].
func Verify(ctx context.Context, n store.Name, key *ecdsa.PublicKey, annotations map[string]string, o transfer.Options) ([]Signature, error) {
	valid, err := verify(ctx, n, key, annotations, o)
	if err == nil && len(valid) == 0 {
		err = ErrUnsigned
	}
	if err != nil {
		return nil, fmt.Errorf("cannot verify %s: %w", n, err)
	}
	return valid, nil
}

func verify(ctx context.Context, n store.Name, key *ecdsa.PublicKey, annotations map[string]string, o transfer.Options) ([]Signature, error) {
	p, err := find(ctx, n, o)
	if err != nil {
		return nil, err
	}
	signed, err := remote.Image(p.tag, p.options...)
	if missing(err) {
		return nil, ErrUnsigned
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read its signatures: %w", err)
	}
	m, err := signed.Manifest()
	if err != nil {
		return nil, fmt.Errorf("cannot read its signatures: %w", err)
	}
	var valid []Signature
	for i, d := range m.Layers {
		if i >= maxSignatures {
			break
		}
		if d.MediaType != payloadType || d.Size > maxPayload {
			continue
		}
		signature, err := base64.StdEncoding.DecodeString(d.Annotations[annotationSig])
		if err != nil {
			continue
		}
		text, err := read(signed, d)
		if err != nil {
			return nil, fmt.Errorf("cannot read its signature %s: %w", d.Digest, err)
		}
		if doc, ok := check(text, signature, key, p.digest.DigestStr(), annotations); ok {
			valid = append(valid, Signature{Digest: doc.Critical.Image.Digest, Reference: doc.Critical.Identity.Reference, Annotations: maps.Clone(doc.Optional)})
		}
	}
	return valid, nil
}

// read reads a payload. Its digest is checked by go-containerregistry.
func read(signed v1.Image, d v1.Descriptor) ([]byte, error) {
	layer, err := signed.LayerByDigest(d.Digest)
	if err != nil {
		return nil, err
	}
	body, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(io.LimitReader(body, maxPayload+1))
}

// check verifies a signature of a payload, and that it is about the digest.
func check(text, signature []byte, key *ecdsa.PublicKey, digest string, annotations map[string]string) (payload, bool) {
	var doc payload
	sum := sha256.Sum256(text)
	if !ecdsa.VerifyASN1(key, sum[:], signature) || json.Unmarshal(text, &doc) != nil {
		return doc, false
	}
	if doc.Critical.Image.Digest != digest || doc.Critical.Type != payloadClaim {
		return doc, false
	}
	for k, want := range annotations {
		if got, ok := doc.Optional[k].(string); !ok || got != want {
			return doc, false
		}
	}
	return doc, true
}
