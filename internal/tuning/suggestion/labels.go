// SPDX-License-Identifier: Apache-2.0

package suggestion

import (
	"strconv"

	"diwan.dev/diwan/internal/tuning/searchspace"
)

// A sampler's labels travel with an assignment to its trial, and from there
// back into the sampler's history. A label that refers to an earlier suggestion does
// so by its index for the sampler, and outside by the name of its trial, as
// with Katib's pbt.

// writeLabels converts a sampler's labels to a trial's labels.
func writeLabels(labels map[string]string, name func(index int) string) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	out := make(map[string]string, len(labels))
	for label, value := range labels {
		if i, err := strconv.Atoi(value); err == nil && i >= 0 && searchspace.IsParent(label) {
			value = name(i)
		}
		out[label] = value
	}
	return out
}

// readLabels returns a trial's labels as the sampler wrote them. One that
// refers to a trial that nobody knows is dropped.
func (x *session) readLabels(labels map[string]string) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	out := make(map[string]string, len(labels))
	for label, value := range labels {
		if searchspace.IsParent(label) {
			i, ok := x.indices[value]
			if !ok {
				continue
			}
			value = strconv.Itoa(i)
		}
		out[label] = value
	}
	return out
}
