// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"fmt"
	"time"

	"diwan.dev/diwan/observation"
)

// timeFormat has a fixed width, so that times sort as their texts do.
const timeFormat = "2006-01-02T15:04:05.000000000Z"

func formatTime(t time.Time) string { return t.UTC().Format(timeFormat) }

func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(timeFormat, s)
	if err != nil {
		return t, fmt.Errorf("%w: %w", observation.ErrCorrupt, err)
	}
	return t, nil
}
