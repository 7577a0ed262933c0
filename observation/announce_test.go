// SPDX-License-Identifier: Apache-2.0

package observation_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/memory"
	"diwan.dev/diwan/observation/observationtest"
)

func TestAnnouncedIsAStore(t *testing.T) {
	t.Parallel()
	observationtest.Run(t, func(context.Context, string) (observation.Store, error) {
		return observation.Announce(memory.New()), nil
	})
}

func TestAnnounced(t *testing.T) {
	t.Parallel()
	s := observation.Announce(memory.New())
	var told []string
	stop := s.Listen(func(t observation.Trial) { told = append(told, t.Name) })
	point := []observation.Point{{Time: time.Unix(1, 0), Metric: "loss", Value: "1"}}
	report := func(trial string, from, to int64, points []observation.Point) {
		_ = s.Append(t.Context(), observation.Trial{Name: trial}, observation.Batch{Source: "s", From: from, To: to, Points: points})
	}
	report("a", 0, 1, point)
	report("b", 0, 1, nil)   // an offset alone
	report("c", 5, 6, point) // refused
	stop()
	report("d", 0, 1, point)
	if !slices.Equal(told, []string{"a"}) {
		t.Errorf("told of %v, want a alone", told)
	}
}
