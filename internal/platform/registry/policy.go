// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// Access is what the sender of a request may do.
type Access int

const (
	// None is no access.
	None Access = iota
	// Read allows pulling and listing.
	Read
	// Write allows pushing and deleting as well.
	Write
)

// TokenPolicy returns a policy for [Config.Authorize]: who sends the token, as
// the password of Basic authentication with any user name or as a bearer token,
// may write. Without credentials one may read if openReads is set.
//
// The endpoint /v2/, where clients begin, asks for credentials even then, since
// docker, podman and skopeo send later only what was asked for there. Clients
// that have none go on without, docker excepted.
func TokenPolicy(token string, openReads bool) func(*http.Request) (Access, error) {
	want := sha256.Sum256([]byte(token))
	return func(req *http.Request) (Access, error) {
		given, ok := credentials(req)
		if ok {
			have := sha256.Sum256([]byte(given))
			if token == "" || subtle.ConstantTimeCompare(have[:], want[:]) != 1 {
				return None, errors.New("the token is wrong")
			}
			return Write, nil
		}
		if openReads && strings.Trim(req.URL.Path, "/") != "v2" {
			return Read, nil
		}
		return None, nil
	}
}

// credentials returns the token that a request carries, if any. Clients without
// credentials may answer a challenge with an empty name and password.
func credentials(req *http.Request) (string, bool) {
	header := req.Header.Get("Authorization")
	if header == "" {
		return "", false
	}
	if name, password, ok := req.BasicAuth(); ok {
		return password, name != "" || password != ""
	}
	if scheme, token, _ := strings.Cut(header, " "); strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token), true
	}
	return "", true // of a scheme that this policy does not know: wrong
}

// minToken is the least length of a token, in bytes: 128 bits in base 32.
const minToken = 26

// EnsureToken returns the token in a file, which it creates if there is none,
// with mode 0600. It refuses a file that others may read.
func EnsureToken(file string) (string, error) {
	token, err := readToken(file)
	if errors.Is(err, fs.ErrNotExist) {
		if err := createToken(file); err != nil {
			return "", fmt.Errorf("cannot create the registry's token: %w", err)
		}
		token, err = readToken(file)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the registry's token: %w", err)
	}
	return token, nil
}

func readToken(file string) (string, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s must be a regular file with mode 0600, it is %s: remove it to get a new token", file, info.Mode())
	}
	opened, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer opened.Close()
	if now, err := opened.Stat(); err != nil || !os.SameFile(info, now) {
		return "", fmt.Errorf("%s was replaced while it was read", file)
	}
	text, err := io.ReadAll(io.LimitReader(opened, 4096))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if len(token) < minToken {
		return "", fmt.Errorf("the token in %s has less than %d characters: remove the file to get a new one", file, minToken)
	}
	return token, nil
}

// createToken writes a new token, unless there is one by then.
func createToken(file string) error {
	staged, err := os.CreateTemp(filepath.Dir(file), ".token-*") // has mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(staged.Name())
	_, err = staged.WriteString(rand.Text() + rand.Text() + "\n")
	if err == nil {
		err = staged.Sync()
	}
	if err := errors.Join(err, staged.Close()); err != nil {
		return err
	}
	if err := os.Link(staged.Name(), file); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
