// SPDX-License-Identifier: Apache-2.0

// Package chance gives random tests their seed. A test that fails shows it, and the
// flag -seed repeats the test:
//
//	go test ./e2e -run 'TestFaults$' -seed 1234567890
package chance

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var given = flag.Uint64("seed", 0, "seed of random tests, as one that failed has shown it; 0: a new one each time")

// Seed returns the seed of a test and logs it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := *given
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("random with -seed %d", seed)
	return seed
}

// New returns the random numbers of a test.
func New(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Seed(t), 0))
}
