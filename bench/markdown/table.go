// SPDX-License-Identifier: Apache-2.0

// Package markdown writes the tables of the results.
package markdown

import (
	"fmt"
	"strings"
)

// Table renders rows; the first row is the head.
func Table(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(&b, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
	return b.String()
}
