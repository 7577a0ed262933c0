// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"flag"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	godigest "github.com/opencontainers/go-digest"

	"diwan.dev/diwan/internal/models/store"
	"diwan.dev/diwan/internal/models/transfer"
	"diwan.dev/diwan/internal/platform/registry"
)

// pushed is a model at a registry, with the given text in its only file.
func pushed(t *testing.T, host, repository, text string) store.Name {
	t.Helper()
	s, err := store.Open(filepath.Join(t.TempDir(), "models"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "m.bin")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := store.ParseName(host + "/" + repository)
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Save(t.Context(), file, n, store.SaveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := transfer.Push(t.Context(), s, v, n, transfer.Options{}); err != nil {
		t.Fatal(err)
	}
	return n
}

func serve(t *testing.T) string {
	t.Helper()
	opened, err := registry.Open(registry.Config{
		Dir: filepath.Join(t.TempDir(), "registry"), Authorize: func(*http.Request) (registry.Access, error) { return registry.Write, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() { _ = opened.Serve(ctx, l) })
	t.Cleanup(func() { cancel(); wait.Wait(); opened.Close() })
	return l.Addr().String()
}

func TestSign(t *testing.T) {
	t.Parallel()
	host := serve(t)
	n := pushed(t, host, "m:v1", "one")
	private, public, err := GenerateKey([]byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParsePrivateKey(private, []byte("wrong")); err == nil || !strings.Contains(err.Error(), "COSIGN_PASSWORD") {
		t.Errorf("a wrong password: %v", err)
	}
	key, err := ParsePrivateKey(private, []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	pub, err := ParsePublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(t.Context(), n, pub, nil, transfer.Options{}); !errors.Is(err, ErrUnsigned) {
		t.Errorf("unsigned: %v", err)
	}
	for _, stage := range []string{"dev", "prod"} {
		if _, err := Sign(t.Context(), n, key, map[string]string{"stage": stage}, transfer.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if valid, err := Verify(t.Context(), n, pub, nil, transfer.Options{}); err != nil || len(valid) != 2 {
		t.Errorf("%v, %v", valid, err)
	}
	if valid, err := Verify(t.Context(), n, pub, map[string]string{"stage": "prod"}, transfer.Options{}); err != nil || len(valid) != 1 {
		t.Errorf("with an annotation: %v, %v", valid, err)
	}
	if _, err := Verify(t.Context(), n, pub, map[string]string{"stage": "test"}, transfer.Options{}); !errors.Is(err, ErrUnsigned) {
		t.Errorf("with another annotation: %v", err)
	}
	if _, err := Verify(t.Context(), n, &other.PublicKey, nil, transfer.Options{}); !errors.Is(err, ErrUnsigned) {
		t.Errorf("another key: %v", err)
	}
	changed := pushed(t, host, "m:v1", "two") // the tag means another model now
	if _, err := Verify(t.Context(), changed, pub, nil, transfer.Options{}); !errors.Is(err, ErrUnsigned) {
		t.Errorf("another model: %v", err)
	}
}

// TestCheck: a signature of one payload is none of another, and one of another digest does not count.
func TestCheck(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	const text = `{"critical":{"identity":{"docker-reference":"x"},"image":{"docker-manifest-digest":"sha256:1"},"type":"cosign container image signature"},"optional":null}`
	sign := func(text string) []byte {
		sum := sha256.Sum256([]byte(text))
		signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		return signature
	}
	for _, c := range []struct {
		name, text, signed, digest string
		ok                         bool
	}{
		{"right", text, text, "sha256:1", true},
		{"another model", text, text, "sha256:2", false},
		{"another payload", strings.Replace(text, "x", "y", 1), text, "sha256:1", false},
		{"another claim", strings.Replace(text, "image signature", "other", 1), strings.Replace(text, "image signature", "other", 1), "sha256:1", false},
		{"no document", "null", "null", "sha256:1", false},
	} {
		if _, ok := check([]byte(c.text), sign(c.signed), &key.PublicKey, c.digest, nil); ok != c.ok {
			t.Errorf("%s: %v", c.name, ok)
		}
	}
}

// program has TestCosign exchange signatures with cosign, which
// `go install github.com/sigstore/cosign/v2/cmd/cosign@v2.6.2` installs:
//
//	go test ./internal/models/signing -run TestCosign -cosign PATH
var program = flag.String("cosign", "", "path of cosign")

func TestCosign(t *testing.T) {
	t.Parallel()
	if *program == "" {
		t.Skip("cosign is not there: name it with -cosign")
	}
	dir := t.TempDir()
	cosign := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), *program, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "COSIGN_PASSWORD=secret")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	n := pushed(t, serve(t), "team/model:v1", "one")
	private, public, err := GenerateKey([]byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := ParsePrivateKey(private, []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "ours.key"), private, 0o600), os.WriteFile(filepath.Join(dir, "ours.pub"), public, 0o600)); err != nil {
		t.Fatal(err)
	}
	digest, err := Sign(t.Context(), n, key, nil, transfer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := cosign("verify", "--key", "ours.pub", "--insecure-ignore-tlog=true", "--allow-http-registry", n.String()); err != nil {
		t.Fatalf("cosign does not verify ours: %v\n%s", err, out)
	}
	if out, err := cosign("generate-key-pair"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	by := n
	by.Tag, by.Digest = "", godigest.Digest(digest)
	for _, name := range []string{"cosign.key", "ours.key"} { // each reads the other's keys
		if out, err := cosign("sign", "--key", name, "--tlog-upload=false", "--yes", "--allow-http-registry", by.String()); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "cosign.pub"))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := ParsePublicKey(text)
	if err != nil {
		t.Fatal(err)
	}
	if valid, err := Verify(t.Context(), n, theirs, nil, transfer.Options{}); err != nil || len(valid) != 1 {
		t.Errorf("cosign's signature: %v, %v", valid, err)
	}
	if text, err = os.ReadFile(filepath.Join(dir, "cosign.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := ParsePrivateKey(text, []byte("secret")); err != nil {
		t.Errorf("cosign's private key: %v", err)
	}
}

func TestKeysRefused(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "x", strings.Repeat("x", maxKey+1), "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n"} {
		if _, err := ParsePublicKey([]byte(bad)); err == nil {
			t.Errorf("%.40q is a public key", bad)
		}
		if _, err := ParsePrivateKey([]byte(bad), nil); err == nil {
			t.Errorf("%.40q is a private key", bad)
		}
	}
}
