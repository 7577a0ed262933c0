// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
)

// errLacking is of a measurement whose peer is not there.
var errLacking = errors.New("the peer is not there")

// measurements by name; each returns a table in Markdown.
var measurements = []struct {
	name    string
	measure func(ctx context.Context) (string, error)
}{
	{"start", measureStart},
	{"overhead", measureOverhead},
	{"scale", measureScale},
	{"load", measureLoad},
	{"many", measureMany},
	{"jobs", measureJobs},
	{"large", measureLarge},
	{"ray", measureRay},
}

// settings are the flags.
var settings struct {
	profile             string
	trials, experiments int
}

func main() {
	flag.StringVar(&settings.profile, "profile", "", "have load, jobs and large write profiles of the server to `DIR`")
	flag.IntVar(&settings.trials, "trials", 10_000, "trials of load; fewer for a shorter run, to profile")
	flag.IntVar(&settings.experiments, "experiments", 1000, "experiments of many")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run runs the named measurements, or all.
func run(ctx context.Context, names []string) error {
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	for _, m := range measurements {
		if len(names) > 0 && !wanted[m.name] {
			continue
		}
		delete(wanted, m.name)
		fmt.Fprintf(os.Stderr, "measuring %s\n", m.name)
		table, err := m.measure(ctx)
		if errors.Is(err, errLacking) && len(names) == 0 {
			fmt.Fprintln(os.Stderr, "left out:", err)
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot measure %s: %w", m.name, err)
		}
		text := fmt.Sprintf("# %s\n\nOn %d cores. Repeat with `go run ./bench %s`.\n\n%s", m.name, runtime.NumCPU(), m.name, table)
		fmt.Print(text)
		if err := os.WriteFile(filepath.Join("bench", "results", m.name+".md"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	for name := range wanted {
		return fmt.Errorf("there is no measurement %q; there are start, overhead, scale, load, many, jobs, large, ray", name)
	}
	return nil
}
