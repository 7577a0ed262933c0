// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"fmt"
	"strconv"
	"strings"
)

// formatIndices writes ascending indices as ranges: "0-2,5", as the status of a
// Job of Kubernetes does.
func formatIndices(indices []int) string {
	var text strings.Builder
	for i := 0; i < len(indices); i++ {
		first := indices[i]
		for i+1 < len(indices) && indices[i+1] == indices[i]+1 {
			i++
		}
		if text.Len() > 0 {
			text.WriteByte(',')
		}
		text.WriteString(strconv.Itoa(first))
		if indices[i] > first {
			fmt.Fprintf(&text, "-%d", indices[i])
		}
	}
	return text.String()
}

// parseIndices reads such ranges: the indices below n. What is none is passed over.
func parseIndices(text string, n int) []int {
	var indices []int
	for part := range strings.SplitSeq(text, ",") {
		first, last, ranges := strings.Cut(part, "-")
		if !ranges {
			last = first
		}
		from, err := strconv.Atoi(first)
		to, bad := strconv.Atoi(last)
		if err != nil || bad != nil {
			continue
		}
		for i := max(from, 0); i <= min(to, n-1); i++ {
			indices = append(indices, i)
		}
	}
	return indices
}
