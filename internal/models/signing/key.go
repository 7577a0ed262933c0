// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
)

const (
	privateType = "ENCRYPTED SIGSTORE PRIVATE KEY"
	cosignType  = "ENCRYPTED COSIGN PRIVATE KEY" // of cosign 1
	publicType  = "PUBLIC KEY"
	// maxKey bounds what is read as a key.
	maxKey = 64 << 10
)

// GenerateKey makes a key pair: the private key is encrypted with the password. Both are PEM, as cosign's.
func GenerateKey(password []byte) (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	sealed, err := encrypted.Encrypt(der, password)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot encrypt the key: %w", err)
	}
	pub, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: privateType, Bytes: sealed}), pem.EncodeToMemory(&pem.Block{Type: publicType, Bytes: pub}), nil
}

// ParsePrivateKey reads cosign's encrypted private key.
func ParsePrivateKey(text, password []byte) (*ecdsa.PrivateKey, error) {
	if len(text) > maxKey {
		return nil, errors.New("it is too large for a key")
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != privateType && block.Type != cosignType {
		return nil, fmt.Errorf("it is not a private key of cosign, which begins with -----BEGIN %s-----", privateType)
	}
	der, err := encrypted.Decrypt(block.Bytes, password)
	if err != nil {
		return nil, fmt.Errorf("the password in COSIGN_PASSWORD is not the key's, or the key is damaged: %w", err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("the key is damaged: %w", err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the key is a %T, and must be one of ECDSA, as `cosign generate-key-pair` makes", parsed)
	}
	return key, nil
}

// ParsePublicKey reads a public key in PEM.
func ParsePublicKey(text []byte) (*ecdsa.PublicKey, error) {
	if len(text) > maxKey {
		return nil, errors.New("it is too large for a key")
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != publicType {
		return nil, fmt.Errorf("it is not a public key, which begins with -----BEGIN %s-----", publicType)
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the key is damaged: %w", err)
	}
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("the key is a %T, and must be one of ECDSA", parsed)
	}
	return key, nil
}
