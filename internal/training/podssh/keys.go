// SPDX-License-Identifier: Apache-2.0

package podssh

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"

	"diwan.dev/diwan/internal/training/sshkey"
)

// readKey reads the key of a directory, which every Pod of a job has.
func readKey(dir string) (ssh.Signer, error) {
	if dir == "" {
		return nil, fmt.Errorf("cannot find keys: %s is not set: this program is for Pods that mount a Secret with ssh keys", EnvKeys)
	}
	text, err := os.ReadFile(filepath.Join(dir, sshkey.PrivateFile))
	if err != nil {
		return nil, fmt.Errorf("cannot read the key: %w", err)
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("cannot read the key %s: %w", filepath.Join(dir, sshkey.PrivateFile), err)
	}
	return key, nil
}

// authorized admits clients with a key in a directory's list.
func authorized(dir string) func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
	return func(_ ssh.ConnMetadata, shown ssh.PublicKey) (*ssh.Permissions, error) {
		text, err := os.ReadFile(filepath.Join(dir, sshkey.AuthorizedFile))
		if err != nil {
			return nil, err
		}
		for len(text) > 0 {
			key, _, _, rest, err := ssh.ParseAuthorizedKey(text)
			if err != nil {
				break
			}
			if bytes.Equal(key.Marshal(), shown.Marshal()) {
				return &ssh.Permissions{}, nil
			}
			text = rest
		}
		return nil, errors.New("the key does not belong to the job")
	}
}
