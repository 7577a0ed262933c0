// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"diwan.dev/diwan/bench/search/analysis"
	"diwan.dev/diwan/bench/search/problem"
	"diwan.dev/diwan/bench/search/result"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "search:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	parts, scale, problems, dims, optimisers, parallel, out, cache, peers string
	first, n, sample, seeds, budget, jobs                                 int
	past, wide                                                            string
	limit                                                                 time.Duration
	again                                                                 bool
}

func read(arguments []string) (o options, err error) {
	f := flag.NewFlagSet("search", flag.ContinueOnError)
	f.StringVar(&o.parts, "parts", "", "what to measure: quality, cost, fidelity; separated by commas; by default all for a scale, and quality otherwise")
	f.StringVar(&o.scale, "scale", "", "a set of searches with a name, written to bench/results: smoke (minutes), quick (half an hour on two cores), standard (an hour) or full (hours); \"\" for what the other flags say")
	f.StringVar(&o.problems, "problems", "bbob", "families: "+strings.Join(problem.Families, ", "))
	f.StringVar(&o.dims, "dims", "5", "dimensions of bbob and noisy")
	f.IntVar(&o.first, "instances", 0, "the first instance of each problem; by default 1 for a scale, and 101 otherwise")
	f.IntVar(&o.n, "count", 1, "how many instances")
	f.IntVar(&o.sample, "sample", 0, "how many of the problems to take, the same at random each time; 0 for all")
	f.StringVar(&o.optimisers, "optimisers", "", "names, or ours, peers, cheap (peers), all; by default those of the scale, or ours,cheap")
	f.IntVar(&o.seeds, "seeds", 3, "searches of each optimiser on each problem")
	f.StringVar(&o.parallel, "parallel", "1", "how many points are pending: 1, 10 or 1,10")
	f.IntVar(&o.budget, "budget", 100, "trials of a search")
	f.IntVar(&o.jobs, "jobs", min(2, runtime.NumCPU()), "searches at once")
	f.DurationVar(&o.limit, "limit", time.Minute, "processor time that an optimiser may spend on one search")
	f.StringVar(&o.past, "past", "100,1000,10000", "cost: trials before")
	f.StringVar(&o.wide, "parameters", "5,20,100", "cost: parameters")
	f.StringVar(&o.out, "out", "", "file of runs; those in it are not run again")
	f.BoolVar(&o.again, "again", false, "run also what the file of runs has")
	f.StringVar(&o.cache, "cache", defaultCache(), "directory of the peers' environments")
	f.StringVar(&o.peers, "peers", filepath.Join("bench", "search", "peers"), "directory of the peers' programs")
	if err := f.Parse(arguments); err != nil {
		return o, err
	}
	if o.first == 0 {
		if o.first = practice; o.scale != "" {
			o.first = 1
		}
	}
	if o.scale == "" {
		o.optimisers = cmp.Or(o.optimisers, "ours,cheap")
	}
	if o.scale != "" && o.parts == "" {
		o.parts = "quality,cost,fidelity"
	}
	o.parts = cmp.Or(o.parts, "quality")
	return o, nil
}

// practice is the first instance of the problems to tune on; the tables of the
// repository are of those from 1 on.
const practice = 101

func defaultCache() string {
	home, err := os.UserCacheDir()
	if err != nil {
		home = os.TempDir()
	}
	return filepath.Join(home, "diwan", "search")
}

func run(ctx context.Context, arguments []string) error {
	o, err := read(arguments)
	if err != nil {
		return err
	}
	if o.scale != "" && o.out == "" {
		o.out = filepath.Join("bench", "results", "search", o.scale+".jsonl")
	}
	for _, name := range strings.Split(o.parts, ",") {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		if i < 0 {
			return fmt.Errorf("unknown part %q: want quality, cost or fidelity", name)
		}
		text, err := parts[i].measure(ctx, o)
		if err != nil {
			return fmt.Errorf("cannot measure %s: %w", name, err)
		}
		fmt.Print(text)
		if o.scale != "" {
			if err := os.WriteFile(filepath.Join("bench", "results", parts[i].file), []byte(text), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// part is something to measure. It returns a page in Markdown, which a run of a
// scale writes to bench/results.
type part struct {
	name, file string
	measure    func(ctx context.Context, o options) (string, error)
}

var parts = []part{
	{"quality", "search.md", quality},
	{"cost", "search-cost.md", costs},
	{"fidelity", "search-fidelity.md", savings},
}

// quality compares what optimizers find.
func quality(ctx context.Context, o options) (string, error) {
	w := newWorkshop(o.peers, o.cache)
	t := &trainer{
		program: filepath.Join(filepath.Dir(o.peers), "models", "models.py"),
		path:    filepath.Join(o.cache, "models.jsonl"),
		python: func(ctx context.Context) (string, error) {
			e, err := w.environment(ctx, "models")
			if err != nil {
				return "", err
			}
			return e.Python, nil
		},
	}
	defer t.close()
	campaigns, err := o.campaigns()
	if err != nil {
		return "", err
	}
	tasks := plan(campaigns, t.evaluate)
	var names []string
	for _, c := range campaigns {
		names = append(names, c.optimisers...)
	}
	if err := w.prepare(ctx, names); err != nil {
		return "", err
	}
	store, err := result.Open(o.out)
	if err != nil {
		return "", err
	}
	e := &executor{workshop: w, store: store, jobs: o.jobs, limit: o.limit, again: o.again}
	if err := e.run(ctx, tasks); err != nil {
		return "", err
	}
	return fmt.Sprintf("# search\n\nOn %d cores. Peers: %s.\n%s", runtime.NumCPU(), w.told(), analysis.Report(store.Runs(), twins)), nil
}

// campaigns returns the searches that the flags ask for.
func (o options) campaigns() ([]campaign, error) {
	if o.scale != "" {
		campaigns, err := scaled(o.scale, o.first)
		if err != nil || o.optimisers == "" {
			return campaigns, err
		}
		names, err := chosen(o.optimisers)
		return only(campaigns, names), err
	}
	dims, err := numbers(o.dims)
	if err != nil {
		return nil, err
	}
	parallel, err := numbers(o.parallel)
	if err != nil {
		return nil, err
	}
	optimisers, err := chosen(o.optimisers)
	if err != nil {
		return nil, err
	}
	return []campaign{{
		families: strings.Split(o.problems, ","), dims: dims, first: o.first, n: o.n, sample: o.sample,
		optimisers: optimisers, seeds: o.seeds, parallel: parallel, trials: o.budget,
	}}, nil
}

func numbers(list string) (numbers []int, err error) {
	for _, text := range strings.Split(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q: want whole numbers from 1, separated by commas", list)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}
