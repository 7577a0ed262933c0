// SPDX-License-Identifier: Apache-2.0

package sqlstore

import "diwan.dev/diwan/observation"

// The statements of the store, or how they begin.
const (
	insertSources = `INSERT INTO observation_sources (namespace, trial_name, source, stored) VALUES `
	selectSources = `SELECT id, namespace, trial_name, source, stored FROM observation_sources WHERE `
	selectOffset  = `SELECT stored FROM observation_sources WHERE namespace = ? AND trial_name = ? AND source = ?`
	updateSources = `UPDATE observation_sources SET stored = CASE id`
	deleteSources = `DELETE FROM observation_sources WHERE id IN `

	insertPoints = `INSERT INTO observation_points (source_id, time, metric_name, value) `
	arraysOfRows = `SELECT * FROM unnest(?::bigint[], ?::text[], ?::text[], ?::text[])`
	deletePoints = `DELETE FROM observation_points WHERE source_id IN `
	selectPoints = `SELECT p.time, p.metric_name, p.value
		FROM observation_sources s JOIN observation_points p ON p.source_id = s.id
		WHERE s.namespace = ? AND s.trial_name = ?`
)

// pointsQuery returns the statement, and its arguments, that selects the points
// of a query in their order.
func (d *Dialect) pointsQuery(t observation.Trial, q observation.Query) (string, []any) {
	text, args := selectPoints, []any{t.Namespace, t.Name}
	if q.Metric != "" {
		text, args = text+" AND "+d.MetricIs, append(args, q.Metric)
	}
	if !q.Start.IsZero() {
		text, args = text+" AND p.time >= ?", append(args, formatTime(q.Start))
	}
	if !q.End.IsZero() {
		text, args = text+" AND p.time <= ?", append(args, formatTime(q.End))
	}
	text += " ORDER BY p.time, p.id"
	if q.Limit > 0 {
		text, args = text+" LIMIT ?", append(args, q.Limit)
	}
	return text, args
}
