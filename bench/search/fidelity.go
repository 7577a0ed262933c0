// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"diwan.dev/diwan/bench/search/fidelity"
)

// savings compares what searches save that do not train each configuration to
// the end. A scale's outcomes are written beside the table.
func savings(ctx context.Context, o options) (string, error) {
	first := uint64(o.first)
	if o.scale != "" {
		first = 1
	}
	families, err := fidelity.Families(first)
	if err != nil {
		return "", err
	}
	p := fidelity.Plan{Families: families, Searches: fidelity.Ours(), Trials: 40, Seeds: o.seeds, Jobs: o.jobs}
	switch o.scale {
	case "smoke":
		p.Families, p.Trials, p.Seeds = families[:2], 20, 3
	case "quick", "standard":
		p.Seeds = 10
	case "full":
		p.Seeds = 40
	}
	note := ""
	if o.scale != "smoke" {
		w := newWorkshop(o.peers, o.cache)
		if e, err := w.environment(ctx, "optuna"); err == nil {
			p.Searches = append(p.Searches, fidelity.Optuna(e.Python, filepath.Join(o.peers, "optuna_pruner_peer.py"))...)
			note = fmt.Sprintf("\nOptuna is %s.\n", cmp.Or(e.Versions["optuna"], "of a version unknown"))
		} else {
			note = fmt.Sprintf("\nOptuna is not in the table: %v.\n", err)
		}
	}
	outcomes, err := fidelity.Measure(ctx, p)
	if err != nil {
		return "", err
	}
	if o.scale != "" {
		if err := writeOutcomes(filepath.Join(filepath.Dir(o.out), o.scale+"-fidelity.jsonl"), outcomes); err != nil {
			return "", err
		}
	}
	return fidelity.Report(p, outcomes) + note, nil
}

// writeOutcomes writes JSON lines.
func writeOutcomes(path string, outcomes []fidelity.Outcome) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(file)
	for _, o := range outcomes {
		if err := encoder.Encode(o); err != nil {
			_ = file.Close() // the error that counts is the first
			return err
		}
	}
	return file.Close()
}
