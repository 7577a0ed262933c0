// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"errors"
	"net"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"golang.org/x/sys/unix"
)

// TestRegistryToken wants the token to be sent to the home's registry alone.
func TestRegistryToken(t *testing.T) {
	t.Parallel()
	own := Registry{Host: "localhost:5000", Token: "secret"}
	for host, want := range map[string]bool{
		"localhost:5000": true, "127.0.0.1:5000": true,
		"localhost:5001": false, "localhost": false, "127.0.0.2:5000": false, "localhost.example:5000": false, "ghcr.io": false,
	} {
		target, err := name.NewRegistry(host)
		if err != nil {
			t.Fatal(err)
		}
		auth, err := own.Resolve(target)
		if err != nil {
			t.Fatal(err)
		}
		if given := auth != authn.Anonymous; given != want {
			t.Errorf("%s gets the token: %v, want %v", host, given, want)
		}
	}
}

// TestRegistryAddress wants the address to stay, and no part of it to be another program's.
func TestRegistryAddress(t *testing.T) {
	t.Parallel()
	home := Home(t.TempDir())
	first, err := home.openRegistry()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := home.openRegistry(); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("a registry that is open is opened again: %v", err)
	}
	for _, l := range first.listeners {
		l.Close()
	}
	if err := first.content.Close(); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(first.at.Host)
	if err != nil {
		t.Fatal(err)
	}
	second, done, err := UseRegistry(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	done()
	if second != first.at {
		t.Errorf("the registry is at %v, was at %v", second, first.at)
	}
	other, err := net.Listen("tcp6", net.JoinHostPort("::1", port))
	if err != nil {
		t.Skip("this machine has no ::1")
	}
	defer other.Close()
	third, done, err := UseRegistry(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if third.Host == second.Host {
		t.Errorf("the registry is at %s, of which another program has one address", third.Host)
	}
}
