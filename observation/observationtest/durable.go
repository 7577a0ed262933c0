// SPDX-License-Identifier: Apache-2.0

package observationtest

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"diwan.dev/diwan/observation"
)

// victimDir is the environment variable that makes the test of RunDurable, in
// a separate process, append to the store in the given directory until it is
// killed.
const victimDir = "DIWAN_OBSERVATIONTEST_VICTIM"

// RunDurable holds stores whose content outlives their process to that
// promise. It runs the test binary again to have a process to kill, so it must
// be called by a top-level test, before anything else in it.
func RunDurable(t *testing.T, open Open) {
	if dir := os.Getenv(victimDir); dir != "" {
		err := appendForEver(t.Context(), open, dir)
		fmt.Println("error:", err) // for killVictim
		t.Fatal(err)
	}
	t.Run("Model", func(t *testing.T) {
		t.Parallel()
		testModel(t, open, true)
	})
	t.Run("Kill", func(t *testing.T) {
		t.Parallel()
		testKill(t, open)
	})
}

// pointsOf returns the points of byte n of the victim's source: n%4 of them.
func pointsOf(n int64) []observation.Point {
	points := make([]observation.Point, n%4)
	for i := range points {
		points[i] = loss(float64(n), strconv.Itoa(i))
	}
	return points
}

func victim() observation.Trial { return observation.Trial{Namespace: "default", Name: "victim"} }

// appendForEver resumes where the store is, one byte at a time, and prints each
// offset once it is stored. It returns only when it fails.
func appendForEver(ctx context.Context, open Open, dir string) error {
	store, err := open(ctx, dir)
	if err != nil {
		return err
	}
	n, err := store.Offset(ctx, victim(), "main")
	if err != nil {
		return err
	}
	for ; ; n++ {
		batch := observation.Batch{Source: "main", From: n, To: n + 1, Points: pointsOf(n)}
		if err := store.Append(ctx, victim(), batch); err != nil {
			return err
		}
		fmt.Println(n + 1)
	}
}

// testKill kills a process that appends, at random moments, and checks each
// time that points and offset agree and that nothing it was promised is gone.
func testKill(t *testing.T, open Open) {
	dir := t.TempDir()
	for round := range 10 {
		promised := killVictim(t, dir)
		store, err := open(t.Context(), dir)
		if err != nil {
			t.Fatalf("round %d: cannot open store again: %v", round, err)
		}
		offset, err := store.Offset(t.Context(), victim(), "main")
		if err != nil || offset < promised {
			t.Errorf("round %d: Offset = %d, %v; want at least %d, which was promised", round, offset, err, promised)
		}
		var want []observation.Point
		for n := range offset {
			want = append(want, pointsOf(n)...)
		}
		wantPoints(t, store, victim(), observation.Query{}, want...)
		if err := store.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

// killVictim runs appendForEver in a process that it kills after a random
// number of appends and a random moment more. It returns the last offset that
// the process was promised.
func killVictim(t *testing.T, dir string) (promised int64) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.run=^"+rootName(t)+"$")
	cmd.Env = append(os.Environ(), victimDir+"="+dir)
	cmd.Stderr = os.Stderr
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, appends := bufio.NewScanner(output), rand.IntN(30)
	for i := 0; lines.Scan(); i++ {
		if promised, err = strconv.ParseInt(lines.Text(), 10, 64); err != nil {
			t.Fatalf("the process that appends says: %s", lines.Text())
		}
		if i == appends {
			time.AfterFunc(time.Duration(rand.IntN(2000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		}
	}
	_ = cmd.Wait() // killed
	return promised
}

// rootName returns the name of the top-level test that t is part of.
func rootName(t *testing.T) string {
	name := t.Name()
	for i, r := range name {
		if r == '/' {
			return name[:i]
		}
	}
	return name
}
