// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"fmt"
	"slices"
	"strings"

	"diwan.dev/diwan/bench/search/analysis"
)

// Report writes the outcomes of a plan as a table.
func Report(p Plan, outcomes []Outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Multi-fidelity searches\n\n"+
		"The fraction of random search's epochs (%d trials of %d) after which a search has an incumbent\n"+
		"as good as random search's final one (the median of %d searches): the geometric mean of\n"+
		"%d searches, with its 95 %% confidence interval, and in parentheses how many got there\n"+
		"with as many epochs; one that did not counts as 1. Random search itself gets there before\n"+
		"its end in half of the cases, and its row shows what luck alone saves. *Restarted* is the\n"+
		"overall result if a trial on a higher rung starts over instead of continuing\n"+
		"from the rung below.\n\n", p.Trials, Epochs, p.Seeds, p.Seeds)
	b.WriteString("| search |")
	for _, f := range p.Families {
		fmt.Fprintf(&b, " %s |", f.Name)
	}
	b.WriteString(" all | restarted |\n|---|" + strings.Repeat("---|", len(p.Families)+2) + "\n")
	var failed []string
	for _, s := range p.Searches {
		of := func(family string) (list []Outcome) {
			for _, o := range outcomes {
				if o.Search == s.Name && (family == "" || o.Family == family) {
					list = append(list, o)
				}
			}
			return list
		}
		if i := slices.IndexFunc(of(""), func(o Outcome) bool { return o.Error != "" }); i >= 0 {
			failed = append(failed, fmt.Sprintf("%s: %s", s.Name, of("")[i].Error))
			continue
		}
		fmt.Fprintf(&b, "| %s |", s.Name)
		for _, f := range p.Families {
			list := of(f.Name)
			fmt.Fprintf(&b, " %s (%d) |", interval(list, part), reached(list))
		}
		fmt.Fprintf(&b, " %s | %s |\n", interval(of(""), part), interval(of(""), again))
	}
	if len(failed) > 0 {
		b.WriteString("\nNot in the table, because a search failed:\n\n")
		for _, line := range failed {
			b.WriteString("- " + line + "\n")
		}
	}
	return b.String()
}

func part(o Outcome) float64 { return o.Part }

func again(o Outcome) float64 { return o.Again }

func interval(outcomes []Outcome, of func(Outcome) float64) string {
	var values []float64
	for _, o := range outcomes {
		values = append(values, of(o))
	}
	i := analysis.Geometric(values)
	return fmt.Sprintf("%.3f [%.3f, %.3f]", i.Mean, i.Low, i.High)
}

func reached(outcomes []Outcome) (n int) {
	for _, o := range outcomes {
		if o.Reached {
			n++
		}
	}
	return n
}
