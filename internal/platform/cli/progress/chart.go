// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"slices"
	"strconv"
	"strings"
)

// chart draws values as a line of steps: rows lines of cells characters. total is how many values
// there will be, so that the line grows to the right; a cell of Unicode's braille patterns is 2
// dots wide and 4 high.
func chart(values []float64, total, cells, rows int) []string {
	if len(values) == 0 || cells < 1 || rows < 1 {
		return nil
	}
	grid := make([][]rune, rows)
	for i := range grid {
		grid[i] = slices.Repeat([]rune{'\u2800'}, cells)
	}
	width, height := 2*cells, 4*rows
	total = max(total, len(values))
	last := (len(values)*width - 1) / total // the right-most column that has a value
	previous := -1
	for x := range last + 1 {
		y := level(values[min(x*total/width, len(values)-1)], values, height)
		if previous < 0 {
			previous = y
		}
		for dot := min(y, previous); dot <= max(y, previous); dot++ {
			set(grid, x, dot)
		}
		previous = y
	}
	lines := make([]string, rows)
	for i, row := range grid {
		lines[i] = strings.TrimRight(strings.ReplaceAll(string(row), "\u2800", " "), " ")
	}
	return lines
}

// level is the height, from 0 to height-1, of a value between the extremes of values.
func level(value float64, values []float64, height int) int {
	low, high := slices.Min(values), slices.Max(values)
	if low == high {
		return height / 2
	}
	// Halves keep the difference of extremes finite.
	return int((value/2 - low/2) / (high/2 - low/2) * float64(height-1))
}

// set lights the dot in column x and at height y above the bottom.
func set(grid [][]rune, x, y int) {
	// The bits of a braille pattern's dots, from the bottom up, left and right.
	bits := [2][4]rune{{0x40, 0x04, 0x02, 0x01}, {0x80, 0x20, 0x10, 0x08}}
	row := len(grid) - 1 - y/4
	grid[row][x/2] |= bits[x%2][y%4]
}

// labelled draws a chart with its greatest and least value at the left.
func labelled(v View, style Style, rows int) []string {
	if style.ASCII || len(v.History) == 0 || slices.Min(v.History) == slices.Max(v.History) {
		return nil // a flat line shows nothing
	}
	high := short(strconv.FormatFloat(slices.Max(v.History), 'g', -1, 64))
	low := short(strconv.FormatFloat(slices.Min(v.History), 'g', -1, 64))
	margin := max(len(high), len(low))
	cells := 60
	if style.Width > 0 {
		cells = min(cells, style.Width-margin-4)
	}
	lines := chart(v.History, v.Status.Planned, cells, rows)
	for i, line := range lines {
		label := ""
		switch i {
		case 0:
			label = high
		case rows - 1:
			label = low
		}
		lines[i] = "  " + style.paint(dim, strings.Repeat(" ", margin-len(label))+label+" ") + style.paint(green, line)
	}
	return lines
}

// bar draws how much of a whole is done, cells wide.
func bar(done, total, cells int, style Style) string {
	if total <= 0 || cells <= 0 {
		return ""
	}
	eighths := min(done, total) * cells * 8 / total
	full, part := eighths/8, eighths%8
	if style.ASCII {
		return "[" + strings.Repeat("#", full) + strings.Repeat("-", cells-full) + "]"
	}
	filled := strings.Repeat("█", full)
	if part > 0 {
		filled += string([]rune("▏▎▍▌▋▊▉")[part-1])
		full++
	}
	return style.paint(green, filled) + style.paint(dim, strings.Repeat("·", cells-full))
}
