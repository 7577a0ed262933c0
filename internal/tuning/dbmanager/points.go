// SPDX-License-Identifier: Apache-2.0

package dbmanager

import (
	"fmt"
	"time"

	"diwan.dev/diwan/api/manager/v1beta1"
	"diwan.dev/diwan/observation"
)

// points parses a report. The error names a point that no store could keep.
func (c *Config) points(log *v1beta1.ObservationLog, now time.Time) ([]observation.Point, error) {
	logs := log.GetMetricLogs()
	points := make([]observation.Point, 0, len(logs))
	for i, l := range logs {
		p := observation.Point{Time: now, Metric: l.GetMetric().GetName(), Value: l.GetMetric().GetValue()}
		if stamp := l.GetTimeStamp(); stamp != "" {
			var err error
			if p.Time, err = parseTime(stamp); err != nil {
				return nil, fmt.Errorf("metric_logs[%d].time_stamp: %w", i, err)
			}
		}
		switch {
		case len(p.Metric) > c.MaxName:
			return nil, fmt.Errorf("metric_logs[%d].metric.name has %d bytes: want at most %d", i, len(p.Metric), c.MaxName)
		case len(p.Value) > c.MaxValue:
			return nil, fmt.Errorf("metric_logs[%d].metric.value has %d bytes: want at most %d", i, len(p.Value), c.MaxValue)
		}
		points = append(points, p)
	}
	return points, observation.Batch{Source: source, To: int64(len(points)), Points: points}.Check()
}

// query reads which points are asked for.
func query(r *v1beta1.GetObservationLogRequest) (observation.Query, error) {
	q := observation.Query{Metric: r.GetMetricName()}
	for _, bound := range []struct {
		field, text string
		to          *time.Time
	}{
		{"start_time", r.GetStartTime(), &q.Start},
		{"end_time", r.GetEndTime(), &q.End},
	} {
		if bound.text == "" {
			continue
		}
		var err error
		if *bound.to, err = parseTime(bound.text); err != nil {
			return q, fmt.Errorf("%s: %w", bound.field, err)
		}
	}
	return q, nil
}

func parseTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, fmt.Errorf("%.40q is not a time: want RFC 3339, such as 2026-01-02T15:04:05.678Z", text)
	}
	return t.UTC(), nil
}

// logOf writes points as an answer.
func logOf(points []observation.Point) *v1beta1.ObservationLog {
	log := &v1beta1.ObservationLog{MetricLogs: make([]*v1beta1.MetricLog, len(points))}
	for i, p := range points {
		log.MetricLogs[i] = &v1beta1.MetricLog{
			TimeStamp: p.Time.UTC().Format(time.RFC3339Nano),
			Metric:    &v1beta1.Metric{Name: p.Metric, Value: p.Value},
		}
	}
	return log
}
