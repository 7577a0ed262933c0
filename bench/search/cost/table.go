// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"diwan.dev/diwan/bench/markdown"
	"diwan.dev/diwan/bench/search/analysis"
)

// Table writes our samplers beside the peers' of the same method, and alone
// where there is no peer.
func Table(figures []Figure, twins []analysis.Twin) string {
	at := map[string]map[Cell]Figure{}
	var cells []Cell
	var ours []string
	for _, f := range figures {
		if at[f.Optimiser] == nil {
			at[f.Optimiser] = map[Cell]Figure{}
			if strings.HasPrefix(f.Optimiser, "ours/") {
				ours = append(ours, f.Optimiser)
			}
		}
		at[f.Optimiser][f.Cell] = f
		if !slices.Contains(cells, f.Cell) {
			cells = append(cells, f.Cell)
		}
	}
	var b strings.Builder
	head := []string{"sampler", "beside", "past trials", "parameters", "ours", "first", "peer's", "first", "theirs ÷ ours", "bytes a trial, ours", "peer's"}
	rows := [][]string{head}
	for _, name := range ours {
		beside := []string{""}
		for _, twin := range twins {
			if twin.Ours == name && at[twin.Peer] != nil {
				beside = append(beside, twin.Peer)
			}
		}
		if len(beside) > 1 {
			beside = beside[1:]
		}
		for _, peer := range beside {
			for _, c := range cells {
				if f, ok := at[name][c]; ok {
					rows = append(rows, row(f, at[peer][c]))
				}
			}
		}
	}
	b.WriteString(markdown.Table(rows))
	return b.String()
}

func row(ours, theirs Figure) []string {
	ratio := "–"
	if theirs.Each > 0 && ours.Each > 0 {
		ratio = fmt.Sprintf("%.3g", float64(theirs.Each)/float64(ours.Each))
		if strings.HasPrefix(theirs.Over, ">") {
			ratio = "> " + ratio
		}
	}
	return []string{
		ours.Optimiser, theirs.Optimiser, fmt.Sprint(ours.Past), fmt.Sprint(ours.Parameters),
		ours.each(), span(ours.First), theirs.each(), span(theirs.First), ratio, ours.size(), theirs.size(),
	}
}

func (f Figure) each() string {
	if f.Over != "" {
		return strings.ReplaceAll(f.Over, "|", "¦")
	}
	return span(f.Each)
}

// span writes a duration in milliseconds with three digits.
func span(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3g ms", float64(d.Nanoseconds())/1e6)
}

// size writes the bytes of a trial; few trials tell little of it beside what a
// library takes once.
func (f Figure) size() string {
	if f.Bytes <= 0 || f.Past < 1000 {
		return "–"
	}
	return fmt.Sprintf("%.0f", f.Bytes)
}
