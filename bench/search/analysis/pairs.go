// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"diwan.dev/diwan/bench/markdown"
	"diwan.dev/diwan/bench/search/result"
)

// writeTwins compares our samplers with the peers' of the same method, per
// family and budget.
func (r *Runs) writeTwins(b *strings.Builder, twins []Twin) {
	rows := [][]string{{"ours", "peer", "in parallel", "family", "trials", "better–worse–equal", "P", "our gap ÷ theirs"}}
	for _, twin := range twins {
		for _, parallel := range []int{1, 10} {
			families := r.families()
			if len(families) > 1 {
				families = append([]string{""}, families...)
			}
			for _, family := range families {
				for _, budget := range r.budgets {
					blocks := r.Blocks(Select{[]string{twin.Ours, twin.Peer}, family, parallel, budget})
					if len(blocks) == 0 {
						continue
					}
					ratios := logRatios(blocks)
					c := Compare(ratios)
					if family == "" {
						family = "all"
					}
					rows = append(rows, []string{
						twin.Ours, twin.Peer, fmt.Sprint(parallel), family, fmt.Sprint(budget),
						fmt.Sprintf("%d–%d–%d", c.Wins, c.Losses, c.Ties), verdict(c), exp(Bootstrap(ratios)).String(),
					})
					if family == "all" {
						family = ""
					}
				}
			}
		}
	}
	if len(rows) > 1 {
		fmt.Fprintf(b, "\n## Samplers of the same method\n\nBlocks in which ours was better, worse and equal; P of Wilcoxon's signed-rank test, in bold where ours is significantly worse; the geometric mean of our gap divided by theirs, below 1 where ours is better.\n\n%s", markdown.Table(rows))
	}
}

func logRatios(blocks []Block) []float64 {
	ratios := make([]float64, len(blocks))
	for i, block := range blocks {
		ratios[i] = math.Log(block.Gaps[0] / block.Gaps[1])
	}
	return ratios
}

func exp(i Interval) Interval {
	return Interval{math.Exp(i.Mean), math.Exp(i.Low), math.Exp(i.High)}
}

func verdict(c Paired) string {
	text := fmt.Sprintf("%.2g", c.P)
	if c.P < 0.05 && c.Losses > c.Wins {
		return "**" + text + "**"
	}
	return text
}

// recorded are the results of Optuna 5.0-dev on the anchors, ten seeds: the
// geometric mean of the gap as a fraction of random's after 50, 100 and 200 trials.
var recorded = []struct {
	name string
	gaps [3]float64
}{
	{"on record: optuna multivariate TPE", [3]float64{0.333, 0.192, 0.120}},
	{"on record: optuna independent TPE", [3]float64{0.452, 0.248, 0.140}},
	{"on record: optuna CMA-ES", [3]float64{0.374, 0.197, 0.043}},
}

// writeAnchors writes the gaps on the anchor functions beside those on record.
func (r *Runs) writeAnchors(b *strings.Builder) {
	budgets := []int{50, 100, 200}
	rows := [][]string{{"optimiser", "gap at 50", "gap at 100", "gap at 200"}}
	for _, optimiser := range r.optimisers {
		row := []string{optimiser}
		for _, budget := range budgets {
			gaps := MeanGaps(r.Blocks(Select{[]string{optimiser}, "anchor", 1, budget}))
			if len(gaps) == 0 {
				row = append(row, "–")
				continue
			}
			row = append(row, gaps[0].String())
		}
		if !slices.Equal(row[1:], []string{"–", "–", "–"}) {
			rows = append(rows, row)
		}
	}
	if len(rows) == 1 {
		return
	}
	for _, known := range recorded {
		rows = append(rows, []string{known.name, fmt.Sprint(known.gaps[0]), fmt.Sprint(known.gaps[1]), fmt.Sprint(known.gaps[2])})
	}
	fmt.Fprintf(b, "\n## Anchors\n\nThe geometric mean over the sixteen functions of the mean gap as a fraction of random's, sequential. The intervals are over functions.\n\n%s", markdown.Table(rows))
}

// writeParallel writes what ten pending points cost each optimizer.
func (r *Runs) writeParallel(b *strings.Builder) {
	rows := [][]string{{"optimiser", "blocks", "gap with ten pending ÷ gap one after another", "searches with a point suggested twice while pending", "such points"}}
	for _, optimiser := range r.optimisers {
		var ratios []float64
		searches, points := 0, 0
		for key, run := range r.byKey {
			if key.Optimiser != optimiser || key.Parallel != 10 {
				continue
			}
			if points += run.Duplicates; run.Duplicates > 0 {
				searches++
			}
			single := key
			single.Parallel = 1
			if alone, ok := r.byKey[single]; ok {
				trials := min(run.Trials, alone.Trials)
				random := r.randomGap(key.Problem, 1, trials)
				least := floor(Family(key.Problem)) * random
				if ratio := math.Log(math.Max(r.gap(run, trials), least) / math.Max(r.gap(alone, trials), least)); !math.IsNaN(ratio) && !math.IsInf(ratio, 0) {
					ratios = append(ratios, ratio)
				}
			}
		}
		if len(ratios) > 0 {
			slices.Sort(ratios) // the order of a map is not to be seen
			rows = append(rows, []string{optimiser, fmt.Sprint(len(ratios)), exp(Bootstrap(ratios)).String(), fmt.Sprint(searches), fmt.Sprint(points)})
		}
	}
	if len(rows) > 1 {
		fmt.Fprintf(b, "\n## What ten pending points cost\n\nGeometric means over blocks at the end of the search.\n\n%s", markdown.Table(rows))
	}
}

// writeFailures writes which runs did not come to their end, and why.
func writeFailures(b *strings.Builder, all []result.Run) {
	type cause struct{ optimiser, reason, family string }
	count, example := map[cause]int{}, map[cause]result.Run{}
	var causes []cause
	for _, run := range all {
		if run.Ended == "" {
			continue
		}
		c := cause{run.Optimiser, run.Ended, Family(run.Problem)}
		if count[c]++; count[c] == 1 {
			causes = append(causes, c)
			example[c] = run
		}
	}
	if len(causes) == 0 {
		return
	}
	slices.SortFunc(causes, func(a, b cause) int {
		return strings.Compare(a.optimiser+a.family+a.reason, b.optimiser+b.family+b.reason)
	})
	rows := [][]string{{"optimiser", "family", "runs", "why they ended early", "for example"}}
	for _, c := range causes {
		e := example[c]
		rows = append(rows, []string{c.optimiser, c.family, fmt.Sprint(count[c]), strings.ReplaceAll(c.reason, "|", "¦"),
			fmt.Sprintf("%s seed %d, %d of %d trials", e.Problem, e.Seed, e.Told, e.Trials)})
	}
	fmt.Fprintf(b, "\n## Ended early\n\nWhat such a run had found counts as its result from then on; a run without any value is not compared.\n\n%s", markdown.Table(rows))
}
