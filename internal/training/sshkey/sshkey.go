// SPDX-License-Identifier: Apache-2.0

// Package sshkey generates the ssh key pairs with which the Pods of an MPI job
// reach each other, and names their files.
//
//	Secret of type kubernetes.io/ssh-auth     files where a container mounts it
//	  ssh-privatekey  ───────────────────────▶ id_rsa
//	  ssh-publickey   ───────────────────────▶ id_rsa.pub, authorized_keys
//
// A job has one pair: all its Pods have the same key and trust it. Names are
// those of Kubeflow's MPI operator and Trainer.
package sshkey

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// The keys of a Secret, and the files that they become.
const (
	Private = "ssh-privatekey"
	Public  = "ssh-publickey"

	PrivateFile    = "id_rsa"
	PublicFile     = "id_rsa.pub"
	AuthorizedFile = "authorized_keys"
)

// New generates an ECDSA P-521 key pair: the content of a Secret, by key.
func New() (map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot generate an ssh key: %w", err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("cannot encode an ssh key: %w", err)
	}
	public, err := ssh.NewPublicKey(&key.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("cannot encode an ssh key: %w", err)
	}
	return map[string][]byte{
		Private: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
		Public:  ssh.MarshalAuthorizedKey(public),
	}, nil
}
