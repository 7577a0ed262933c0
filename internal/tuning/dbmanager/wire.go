// SPDX-License-Identifier: Apache-2.0

package dbmanager

import (
	"time"

	wire "diwan.dev/diwan/api/observation/v1"
	"diwan.dev/diwan/observation"
)

// ToWire writes points as messages.
func ToWire(points []observation.Point) []*wire.Point {
	messages := make([]*wire.Point, len(points))
	for i, p := range points {
		messages[i] = &wire.Point{Seconds: p.Time.Unix(), Nanos: int32(p.Time.Nanosecond()), Metric: p.Metric, Value: p.Value}
	}
	return messages
}

// FromWire reads points from messages.
func FromWire(messages []*wire.Point) []observation.Point {
	points := make([]observation.Point, len(messages))
	for i, m := range messages {
		points[i] = observation.Point{Time: timeOf(m), Metric: m.GetMetric(), Value: m.GetValue()}
	}
	return points
}

func timeOf(m *wire.Point) time.Time { return time.Unix(m.GetSeconds(), int64(m.GetNanos())).UTC() }

// boundOf reads a bound of a query: the zero time for none.
func boundOf(m *wire.Point) time.Time {
	if m == nil {
		return time.Time{}
	}
	return timeOf(m)
}
