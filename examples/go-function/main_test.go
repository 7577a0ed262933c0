// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"diwan.dev/diwan/optimize"
)

// TestMainPrintsAnOptimum runs the example as it is.
func TestMainPrintsAnOptimum(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout = write
	os.Stderr, _ = os.Open(os.DevNull)
	defer func() { os.Stdout, os.Stderr = stdout, stderr }()
	main()
	write.Close()
	text, err := io.ReadAll(read)
	if err != nil {
		t.Fatal(err)
	}
	var assignments []optimize.Assignment
	for _, field := range strings.Fields(string(bytes.TrimSpace(text))) {
		name, value, _ := strings.Cut(field, "=")
		assignments = append(assignments, optimize.Assignment{Name: name, Value: value})
	}
	space, err := optimize.NewSpace(optimize.Double("x", -5, 5), optimize.Double("y", -5, 5))
	if err != nil {
		t.Fatal(err)
	}
	point, err := space.Parse(assignments)
	if err != nil {
		t.Fatalf("printed %q: %v", text, err)
	}
	if value := himmelblau(point); value > 1e-2 {
		t.Errorf("printed %q, where the function is %v: want an optimum, where it is 0", text, value)
	}
}
