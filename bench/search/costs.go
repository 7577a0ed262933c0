// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"diwan.dev/diwan/bench/search/cost"
	"diwan.dev/diwan/bench/search/study"
)

// costs measures CPU time, one optimizer after another and nothing
// beside it.
func costs(ctx context.Context, o options) (string, error) {
	names, err := chosen(cmp.Or(o.optimisers, "all"))
	if err != nil {
		return "", err
	}
	w := newWorkshop(o.peers, o.cache)
	if err := w.prepare(ctx, names); err != nil {
		return "", err
	}
	past, err := numbers(o.past)
	if err != nil {
		return "", err
	}
	wide, err := numbers(o.wide)
	if err != nil {
		return "", err
	}
	var figures []cost.Figure
	for _, name := range names {
		var over []cost.Cell // where a search took too long: a greater one will too
		for _, parameters := range wide {
			for _, n := range past {
				c := cost.Cell{Past: n, Parameters: parameters}
				i := slices.IndexFunc(over, func(done cost.Cell) bool { return done.Past <= n && done.Parameters <= parameters })
				if i >= 0 {
					figures = append(figures, cost.Figure{Optimiser: name, Cell: c, First: o.limit, Each: o.limit, Over: fmt.Sprintf("> %v at %d × %d already", o.limit, over[i].Past, over[i].Parameters)})
					continue
				}
				f, err := measured(ctx, w, name, c, o)
				if err != nil {
					return "", fmt.Errorf("%s: %w", name, err)
				}
				fmt.Fprintf(os.Stderr, "%s, %d trials, %d parameters: %v each, first %v, %.0f bytes %s\n", name, n, parameters, f.Each, f.First, f.Bytes, f.Over)
				if figures = append(figures, f); strings.HasPrefix(f.Over, ">") {
					over = append(over, c)
				}
			}
		}
	}
	slices.SortStableFunc(figures, func(a, b cost.Figure) int {
		return cmp.Or(cmp.Compare(a.Parameters, b.Parameters), cmp.Compare(a.Past, b.Past))
	})
	if o.scale != "" {
		if err := writeJSON(filepath.Join("bench", "results", "search", "cost.json"), figures); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("# search-cost\n\nProcessor time of a suggestion with telling its result, on one of %d cores, after so many past trials; `first` is the first after a restart, which reads the history. Peers: %s. Repeat with `go run ./bench/search -parts cost -optimisers %s`.\n\n%s",
		runtime.NumCPU(), w.told(), cmp.Or(o.optimisers, "all"), cost.Table(figures, twins)), nil
}

func measured(ctx context.Context, w *workshop, name string, c cost.Cell, o options) (cost.Figure, error) {
	optimiser, err := w.optimiser(name)
	if err != nil {
		return cost.Figure{Optimiser: name, Cell: c, Over: err.Error()}, nil
	}
	if p, ok := optimiser.(*study.Peer); ok {
		return cost.Peer(ctx, name, p, c, o.limit)
	}
	return cost.Ours(ctx, name, optimiser.(study.Ours), c, o.limit)
}

func writeJSON(path string, value any) error {
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
