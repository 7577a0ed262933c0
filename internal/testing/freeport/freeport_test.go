// SPDX-License-Identifier: Apache-2.0

package freeport

import (
	"net"
	"testing"
)

func TestAddress(t *testing.T) {
	t.Parallel()
	held := map[string]bool{}
	for range 200 {
		address, err := Address()
		if err != nil {
			t.Fatal(err)
		}
		if held[address] {
			t.Fatalf("%s is held, and given again", address)
		}
		held[address] = true
		tcp, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer tcp.Close()
		udp, err := net.ListenPacket("udp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer udp.Close()
		if port := tcp.Addr().(*net.TCPAddr).Port; port < first || port >= end {
			t.Fatalf("port %d is one that the system gives to others", port)
		}
	}
}

func TestAddressesDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		address, err := Address()
		if err != nil {
			t.Fatal(err)
		}
		if seen[address] {
			t.Fatalf("%s is given twice, though a program that was told it may not listen yet", address)
		}
		seen[address] = true
	}
}
