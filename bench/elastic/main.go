// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"

	"diwan.dev/diwan/bench/search/peer"
)

// bench is what the measurements share.
type bench struct {
	ctx    context.Context
	dir    string // for logs and checkpoints
	python string // an interpreter with numpy and torch
	agent  string // the program diwan-elastic
	source string // the root of the source tree
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	python := flag.String("python", "", "an interpreter with numpy and torch (default one that is made, which fetches some GB)")
	flag.Parse()
	if err := run(ctx, *python, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measurements by name; each returns a table in Markdown.
var measurements = []struct {
	name    string
	measure func(*bench) (string, error)
}{{"recover", measureRecover}, {"share", measureShare}}

func run(ctx context.Context, python string, names []string) error {
	for _, name := range names {
		if name != "recover" && name != "share" {
			return fmt.Errorf("there is no measurement %q; there are recover, share", name)
		}
	}
	dir, err := os.MkdirTemp("", "diwan-bench-elastic-")
	if err != nil {
		return err
	}
	b := &bench{ctx: ctx, dir: dir, python: python, agent: filepath.Join(dir, "diwan-elastic")}
	if b.source, err = os.Getwd(); err != nil {
		return err
	}
	if python == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		environment, err := peer.Make(ctx, filepath.Join(cache, "diwan", "elastic"), filepath.Join("bench", "elastic", "requirements.txt"))
		if err != nil {
			return err
		}
		b.python = environment.Python
	}
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", b.agent, "./cmd/diwan-elastic")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the agent (run this in the root of the source tree): %w\n%s", err, out)
	}
	for _, m := range measurements {
		if len(names) > 0 && !slices.Contains(names, m.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "measuring %s; logs are in %s\n", m.name, dir)
		table, err := m.measure(b)
		if err != nil {
			return fmt.Errorf("cannot measure %s: %w", m.name, err)
		}
		text := fmt.Sprintf("On %d cores. Repeat with `go run ./bench/elastic %s`.\n\n%s", runtime.NumCPU(), m.name, table)
		fmt.Print(text)
		if err := os.WriteFile(filepath.Join("bench", "results", "elastic-"+m.name+".md"), []byte("# Elastic training: "+m.name+"\n\n"+text), 0o644); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}
