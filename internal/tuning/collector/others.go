// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"slices"
	"strings"

	"diwan.dev/diwan/internal/platform/typo"
)

// others remembers under which names values were reported that are no metrics,
// until one of the objective comes: its name may be misspelled. A nil one does
// nothing.
type others struct {
	objective string
	found     bool
	names     []string
	looked    int // units that were searched
}

// Limits on the search for misspelled names: how many units without a metric
// are searched, and how many names are remembered.
const (
	maxSearched = 10_000
	maxOthers   = 20
)

// newOthers begins for metrics of which the first is the objective.
func newOthers(metrics []string) *others {
	if len(metrics) == 0 {
		return nil
	}
	return &others{objective: metrics[0]}
}

// search reports whether a unit without metrics is worth a look, and counts it.
func (o *others) search() bool {
	if o == nil || o.found || o.looked == maxSearched {
		return false
	}
	o.looked++
	return true
}

// metric takes in that a metric has a value.
func (o *others) metric(name string) {
	if o != nil && name == o.objective {
		o.found = true
	}
}

// other takes in that something else has a value, if it is a number.
func (o *others) other(name, value []byte) {
	if o == nil || o.found || len(o.names) == maxOthers || len(name) == 0 || !hasDigit(value) {
		return
	}
	if text := clean(name); text != "" && !slices.Contains(o.names, text) {
		o.names = append(o.names, text)
	}
}

// complaint says that the objective never had a value, but others had; "" where
// that is not so.
func (o *others) complaint() string {
	if o == nil || o.found || len(o.names) == 0 {
		return ""
	}
	return fmt.Sprintf("the objective metric is %q, which was not reported; what was reported: %s%s",
		o.objective, shorten(strings.Join(o.names, ", ")), typo.DidYouMean(typo.Nearest(o.objective, o.names)))
}
