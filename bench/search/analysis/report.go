// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"diwan.dev/diwan/bench/markdown"
	"diwan.dev/diwan/bench/search/result"
)

// usual are the numbers of trials after which searches are compared, as far as
// they go; the end of the longest is another.
var usual = []int{25, 50, 100, 200}

func budgets(all []result.Run) []int {
	longest := 0
	for _, run := range all {
		longest = max(longest, run.Trials)
	}
	list := append([]int{longest}, usual...)
	slices.Sort(list)
	return slices.Compact(list[:1+slices.Index(list, longest)])
}

// Twin is one of our samplers and a peer's sampler of the same method.
type Twin struct{ Ours, Peer string }

// Report writes the tables of some runs in Markdown.
func Report(all []result.Run, twins []Twin) string {
	r := New(all)
	var b strings.Builder
	for _, parallel := range []int{1, 10} {
		for _, field := range r.fields(parallel) {
			r.writeField(&b, field, parallel)
		}
	}
	for _, parallel := range []int{1, 10} {
		if f, ok := r.broadest(parallel); ok {
			r.writeField(&b, f, parallel)
		}
	}
	r.writeTwins(&b, twins)
	r.writeAnchors(&b)
	r.writeParallel(&b)
	writeFailures(&b, all)
	return b.String()
}

// field is a set of optimizers that ran some problems together.
type field struct {
	title      string
	optimisers []string
}

// chief is the sampler of ours that stands against the peers where it was run.
const chief = "ours/auto"

// fields returns the chief and the peers: first those that ran most, which meet
// on most problems, then with them those that ran fewer, which meet on fewer,
// and so on to all. Without the chief, all of ours are among them.
func (r *Runs) fields(parallel int) (fields []field) {
	count := r.counts(parallel)
	if count[chief] > 0 {
		maps.DeleteFunc(count, func(name string, _ int) bool { return strings.HasPrefix(name, "ours/") && name != chief })
	}
	names := byCount(count)
	for i, name := range names {
		// A new field begins where the next ran markedly fewer.
		if i+1 < len(names) && 10*count[names[i+1]] > 8*count[name] {
			continue
		}
		fields = append(fields, field{fmt.Sprintf("%d of %d optimisers, %s", i+1, len(names), mode(parallel)), slices.Sorted(slices.Values(names[:i+1]))})
	}
	return fields
}

// broadest returns all optimizers, each of ours included, that ran nearly as
// much as any, where fields did not have them.
func (r *Runs) broadest(parallel int) (field, bool) {
	count := r.counts(parallel)
	names := byCount(count)
	names = slices.DeleteFunc(names, func(name string) bool { return 10*count[name] <= 8*count[names[0]] })
	ours := 0
	for _, name := range names {
		if strings.HasPrefix(name, "ours/") {
			ours++
		}
	}
	slices.Sort(names)
	return field{"Each of ours, " + mode(parallel), names}, count[chief] > 0 && ours > 1
}

// counts returns how many searches each optimizer ran.
func (r *Runs) counts(parallel int) map[string]int {
	count := map[string]int{}
	for key := range r.byKey {
		if key.Parallel == parallel {
			count[key.Optimiser]++
		}
	}
	return count
}

func byCount(count map[string]int) []string {
	return slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), strings.Compare(a, b))
	})
}

func mode(parallel int) string {
	if parallel == 1 {
		return "one after another"
	}
	return fmt.Sprint(parallel, " pending")
}

// writeField writes who ranks where: over all problems by budget, and by
// family at the greatest budget.
func (r *Runs) writeField(b *strings.Builder, f field, parallel int) {
	last := 0
	columns := map[string][]Interval{}
	var names []string
	add := func(name string, blocks []Block, of func([]Block) []Interval) {
		if len(blocks) > 0 {
			names = append(names, fmt.Sprintf("%s (%d)", name, len(blocks)))
			columns[names[len(names)-1]] = of(blocks)
		}
	}
	for _, budget := range r.budgets {
		blocks := r.Blocks(Select{Optimisers: f.optimisers, Parallel: parallel, Trials: budget})
		if len(blocks) > 0 {
			last = budget
		}
		add(fmt.Sprint("rank at ", budget), blocks, MeanRanks)
	}
	if last == 0 {
		return
	}
	at := func(family string, trials int) []Block {
		return r.Blocks(Select{Optimisers: f.optimisers, Parallel: parallel, Family: family, Trials: trials})
	}
	order := byMean(MeanRanks(at("", last)))
	fmt.Fprintf(b, "\n## %s\n\nMean ranks with 95 %% intervals, and the geometric mean of the gap as a fraction of random's; in parentheses the number of blocks.\n\n", f.title)
	add(fmt.Sprint("gap at ", last), at("", last), MeanGaps)
	writeColumns(b, f.optimisers, order, names, columns)
	if len(order) > 1 {
		fmt.Fprintf(b, "\nThe rank of %s minus that of %s, block by block, at %d trials: %v.\n",
			f.optimisers[order[0]], f.optimisers[order[1]], last, difference(at("", last), order[0], order[1]))
	}
	names = nil
	for _, family := range r.families() {
		for i := len(r.budgets) - 1; i >= 0; i-- {
			if blocks := at(family, r.budgets[i]); len(blocks) > 0 {
				add(fmt.Sprintf("%s at %d", family, r.budgets[i]), blocks, MeanRanks)
				break
			}
		}
	}
	fmt.Fprint(b, "\nMean ranks by family:\n\n")
	writeColumns(b, f.optimisers, order, names, columns)
}

// difference returns the mean difference of the ranks of two optimizers.
func difference(blocks []Block, a, b int) Interval {
	differences := make([]float64, len(blocks))
	for i, block := range blocks {
		ranks := Ranks(block.Gaps)
		differences[i] = ranks[a] - ranks[b]
	}
	return Bootstrap(differences)
}

func writeColumns(b *strings.Builder, optimisers []string, order []int, names []string, columns map[string][]Interval) {
	rows := [][]string{append([]string{"optimiser"}, names...)}
	for _, i := range order {
		row := []string{optimisers[i]}
		for _, name := range names {
			row = append(row, columns[name][i].String())
		}
		rows = append(rows, row)
	}
	b.WriteString(markdown.Table(rows))
}

// byMean returns the indices of intervals in the order of their means.
func byMean(intervals []Interval) []int {
	means := make([]float64, len(intervals))
	order := make([]int, len(intervals))
	for i, v := range intervals {
		means[i], order[i] = v.Mean, i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(means[a], means[b]) })
	return order
}

// families returns the families of the problems, in order.
func (r *Runs) families() []string {
	var families []string
	for _, p := range r.problems {
		families = append(families, Family(p))
	}
	slices.Sort(families)
	return slices.Compact(families)
}

// String writes the mean and the interval with three digits.
func (i Interval) String() string {
	if math.IsNaN(i.Mean) {
		return "–"
	}
	return fmt.Sprintf("%.3g (%.3g to %.3g)", i.Mean, i.Low, i.High)
}
