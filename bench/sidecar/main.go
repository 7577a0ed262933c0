// SPDX-License-Identifier: Apache-2.0

// Command sidecar measures what a collector in a trial's Pod costs, without a
// cluster: the programs that run there, beside a DBManager that keeps points in
// memory.
//
//	go run ./bench/sidecar
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"diwan.dev/diwan/internal/tuning/collector"
	"diwan.dev/diwan/internal/tuning/collector/entry"
	"diwan.dev/diwan/internal/tuning/collector/sidecar"
	"diwan.dev/diwan/internal/tuning/dbmanager"
	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/memory"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// anyone lets everyone do everything.
type anyone struct{}

func (anyone) Trial(_ context.Context, name string, _ dbmanager.Verb) (observation.Trial, error) {
	return observation.Trial{Namespace: "bench", Name: name}, nil
}

func run() error {
	work, err := os.MkdirTemp("", "diwan-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", work+"/", "./cmd/diwan-collector", "./cmd/diwan-entry").CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot build: %w\n%s", err, out)
	}
	dir := entry.Dir(filepath.Join(work, "shared"))
	if err := os.Mkdir(string(dir), 0o755); err != nil {
		return err
	}
	if out, err := exec.Command(filepath.Join(work, entry.Name), "install", string(dir)).CombinedOutput(); err != nil {
		return fmt.Errorf("cannot install: %w\n%s", err, out)
	}
	return measure(work, dir)
}

// measure runs a collector and, beside it, one program after another.
func measure(work string, dir entry.Dir) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	store := observation.Announce(memory.New())
	var serving sync.WaitGroup
	serving.Go(func() { _ = dbmanager.New(dbmanager.DefaultConfig(store, anyone{})).Serve(ctx, listener) })
	token := filepath.Join(work, "token")
	if err := os.WriteFile(token, []byte("none"), 0o600); err != nil {
		return err
	}
	trial := observation.Trial{Namespace: "bench", Name: "trial"}
	text, err := sidecar.Config{
		Spec: collector.Spec{Trial: trial, Kind: collector.StdOut, Metrics: []string{"printed"}, Container: "main"},
		Dir:  dir, Store: listener.Addr().String(), Token: token,
	}.Encode()
	if err != nil {
		return err
	}
	program := exec.Command(filepath.Join(work, sidecar.Name), text)
	program.Stderr = os.Stderr
	if err := program.Start(); err != nil {
		return err
	}
	latencies, err := seen(store, trial, dir)
	if err != nil {
		return err
	}
	ends, err := repeat(40, append(entry.Command(dir, time.Minute), "true"))
	if err != nil {
		return err
	}
	shell, err := repeat(40, []string{"sh", "-c", "true 1>" + filepath.Join(work, "log") + " 2>&1 && echo completed >" + filepath.Join(work, "done")})
	if err != nil {
		return err
	}
	_ = program.Process.Signal(syscall.SIGTERM)
	_ = program.Wait()
	cancel()
	serving.Wait()
	usage, _ := program.ProcessState.SysUsage().(*syscall.Rusage)
	fmt.Printf("| from a line that is printed to the point that is stored, 500 lines in 10 s | median %v, 99 of 100 within %v |\n", at(latencies, 50), at(latencies, 99))
	fmt.Printf("| a run of `true` by diwan-entry, until all is stored | median %v, 99 of 100 within %v |\n", at(ends, 50), at(ends, 99))
	fmt.Printf("| the same by a shell with a redirection | median %v, 99 of 100 within %v |\n", at(shell, 50), at(shell, 99))
	fmt.Printf("| the collector's processor time for all that | %v |\n", (program.ProcessState.UserTime() + program.ProcessState.SystemTime()).Round(time.Millisecond))
	fmt.Printf("| the collector's memory at most | %d MB |\n", usage.Maxrss/1000)
	return nil
}

// seen prints the time again and again, and returns how long each took to be stored.
func seen(store *observation.Announced, trial observation.Trial, dir entry.Dir) ([]time.Duration, error) {
	var mu sync.Mutex
	var all []time.Duration
	known := 0
	stop := store.Listen(func(observation.Trial) {
		now := time.Now()
		points, err := store.Points(context.Background(), trial, observation.Query{})
		mu.Lock()
		defer mu.Unlock()
		for ; err == nil && known < len(points); known++ {
			if nanos, err := strconv.ParseInt(points[known].Value, 10, 64); err == nil {
				all = append(all, now.Sub(time.Unix(0, nanos)))
			}
		}
	})
	defer stop()
	script := `i=0; while [ $i -lt 500 ]; do echo printed=$(date +%s%N); sleep 0.02; i=$((i+1)); done`
	cmd := exec.Command("sh", append([]string{"-c", `exec "$@"`, "sh"}, append(entry.Command(dir, time.Minute), "sh", "-c", script)...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cannot run: %w\n%s", err, out)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(all) != 500 {
		return nil, fmt.Errorf("%d points are stored, want 500", len(all))
	}
	return all, nil
}

// repeat runs a command several times and returns how long each took.
func repeat(times int, command []string) ([]time.Duration, error) {
	var all []time.Duration
	for range times {
		began := time.Now()
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("cannot run %s: %w\n%s", strings.Join(command, " "), err, out)
		}
		all = append(all, time.Since(began))
	}
	return all, nil
}

// at is the duration within which so many of a hundred are.
func at(all []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)].Round(100 * time.Microsecond)
}
