// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"testing"
)

// TestTableIsCurrent holds the table of the package to golang.org/x/sys/unix.
func TestTableIsCurrent(t *testing.T) {
	t.Parallel()
	want, err := table()
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("../../table.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Error("table.go is out of date: run make generate, or go generate ./internal/platform/node/seccomp")
	}
}
