// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"strconv"
	"strings"
)

// Block renders work as lines to be redrawn in place: for each object a line of numbers and, for
// a search, a line of its best trial; for a single search also a chart.
func Block(views []View, style Style) []string {
	var lines []string
	for _, v := range views {
		lines = append(lines, style.fit(headline(v, style)))
		if v.Best == nil {
			continue
		}
		best := style.paint(bold, "best "+Clean(v.Objective.Metric)+" "+short(v.Best.Value))
		lines = append(lines, style.fit("  "+best+"  "+assignments(v.Best.Parameters, short)+style.paint(dim, "  "+v.Best.Name)))
		if len(views) == 1 {
			lines = append(lines, labelled(v, style, 4)...)
		}
	}
	return lines
}

// headline is the line of numbers.
func headline(v View, style Style) string {
	parts := []string{style.paint(bold, v.ID.Name)}
	if drawn := bar(v.Counts.Ended(), v.Status.Planned, barCells(style), style); drawn != "" {
		parts = append(parts, drawn)
	}
	parts = append(parts, numbers(v, style)...)
	if v.Status.Condition != "" {
		parts = append(parts, string(v.Status.Condition), took(v.Elapsed))
		return strings.Join(parts, "  ")
	}
	parts = append(parts, clock(v.Elapsed))
	if v.Remaining >= 0 {
		parts = append(parts, "about "+roughly(v.Remaining)+" left")
	}
	return strings.Join(parts, "  ")
}

// barCells is how wide a bar is: a quarter of the line, which leaves room for the numbers.
func barCells(style Style) int {
	if style.Width <= 0 {
		return 24
	}
	return min(24, style.Width/4)
}

// numbers returns the nonzero counts, the ended ones first, and why an object
// is waiting.
func numbers(v View, style Style) []string {
	if v.Unit == Itself {
		if v.Status.Condition != "" {
			return nil
		}
		return []string{podState(v)}
	}
	done := strconv.Itoa(v.Counts.Ended())
	if v.Status.Planned > 0 {
		done += "/" + strconv.Itoa(v.Status.Planned)
	}
	parts := []string{done + " " + string(v.Unit) + "s"}
	for _, part := range []struct {
		n    int
		text string
		bad  bool
	}{
		{v.Counts.Running, "running", false},
		{v.Counts.Pending, "waiting", false},
		{v.Counts.Failed, "failed", true},
		{v.Counts.MetricsUnavailable, "without metric", true},
		{v.Counts.EarlyStopped, "stopped early", false},
		{v.Counts.Killed, "killed", true},
	} {
		if part.n == 0 {
			continue
		}
		text := strconv.Itoa(part.n) + " " + part.text
		if part.bad {
			text = style.paint(red, text)
		}
		parts = append(parts, text)
	}
	if v.Status.Condition == "" {
		for _, why := range []string{v.Status.Message, v.Waits} {
			if why != "" {
				parts = append(parts, Clean(why))
			}
		}
	}
	return parts
}
