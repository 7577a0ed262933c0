// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

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
	_, otherPublic, err := GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ParsePublicKey(otherPublic)
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
	if _, err := Verify(t.Context(), n, other, nil, transfer.Options{}); !errors.Is(err, ErrUnsigned) {
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
	text := []byte(`{"critical":{"identity":{"docker-reference":"x"},"image":{"docker-manifest-digest":"sha256:1"},"type":"cosign container image signature"},"optional":null}`)
	private, _, err := GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ParsePrivateKey(private, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := check(text, []byte("nothing"), &key.PublicKey, "sha256:1", nil); ok {
		t.Error("no signature is one")
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
