// SPDX-License-Identifier: Apache-2.0

package earlystopping

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/observation"
)

// Decision is whether a trial is to be stopped. The zero Decision lets it
// continue.
type Decision struct {
	// Step is the one whose report decided: how many values of the objective
	// the trial had reported.
	Step int
	// Why is a sentence without a period, "" to continue.
	Why string
}

// Stop reports whether the trial is to be stopped.
func (d Decision) Stop() bool { return d.Why != "" }

// Met decides by rules in Katib's format: a trial is stopped when all of them
// have been met, each at any report. points are what the trial has reported, in
// the order of [observation.Store.Points]. A rule on the objective metric
// compares the best value so far, one on another metric each value. A rule whose
// value is not a number, or whose comparison is unknown, is never met.
func Met(rules []v1beta1.EarlyStoppingRule, objective *v1beta1.ObjectiveSpec, points []observation.Point) Decision {
	if len(rules) == 0 {
		return Decision{}
	}
	waiting := make([]*fixed, len(rules))
	for i, r := range rules {
		waiting[i] = newFixed(r, objective)
	}
	left, step := len(rules), 0
	for _, p := range points {
		value, ok := number(p.Value)
		if !ok {
			continue
		}
		if objective != nil && p.Metric == objective.ObjectiveMetricName {
			step++
		}
		for _, r := range waiting {
			if r.rule.Name == p.Metric && r.add(value) {
				left--
			}
		}
		if left == 0 {
			reasons := make([]string, len(waiting))
			for i, r := range waiting {
				reasons[i] = r.why
			}
			return Decision{step, strings.Join(reasons, ", and ")}
		}
	}
	return Decision{}
}

// fixed is a rule under way.
type fixed struct {
	rule  v1beta1.EarlyStoppingRule
	limit float64 // NaN never comes true
	// worst is that of the objective, and 0 for another metric; best is the
	// best so far.
	worst, best float64
	reports     int
	why         string // set once it came true
}

func newFixed(rule v1beta1.EarlyStoppingRule, objective *v1beta1.ObjectiveSpec) *fixed {
	r := &fixed{rule: rule, limit: math.NaN()}
	if limit, ok := number(rule.Value); ok {
		r.limit = limit
	}
	if objective != nil && rule.Name == objective.ObjectiveMetricName {
		r.worst = math.Inf(1)
		if objective.Type == v1beta1.ObjectiveTypeMaximize {
			r.worst = math.Inf(-1)
		}
		r.best = r.worst
	}
	return r
}

// add takes the next value of the rule's metric and reports whether the rule
// comes true with it.
func (r *fixed) add(value float64) bool {
	r.reports++
	kind := "value"
	if r.worst != 0 {
		if !math.IsInf(value, 0) && (r.worst > 0 && value < r.best || r.worst < 0 && value > r.best) {
			r.best = value // never NaN
		}
		kind, value = "best value", r.best
	}
	if r.why != "" || r.reports < r.rule.StartStep || !r.holds(value) {
		return false
	}
	how := map[v1beta1.ComparisonType]string{
		v1beta1.ComparisonTypeEqual: "is", v1beta1.ComparisonTypeLess: "is less than", v1beta1.ComparisonTypeGreater: "is greater than",
	}
	r.why = fmt.Sprintf("the %s of %s at step %d, %s, %s %s", kind, r.rule.Name, r.reports,
		strconv.FormatFloat(value, 'g', 6, 64), how[r.rule.Comparison], r.rule.Value)
	return true
}

func (r *fixed) holds(value float64) bool {
	switch r.rule.Comparison {
	case v1beta1.ComparisonTypeEqual:
		return value == r.limit
	case v1beta1.ComparisonTypeLess:
		return value < r.limit
	case v1beta1.ComparisonTypeGreater:
		return value > r.limit
	}
	return false
}

// Values returns the values of one metric, in the order of the points.
func Values(points []observation.Point, metric string) []float64 {
	var values []float64
	for _, p := range points {
		if p.Metric != metric {
			continue
		}
		if v, ok := number(p.Value); ok {
			values = append(values, v)
		}
	}
	return values
}

// number reads a value; one out of range is infinite.
func number(text string) (float64, bool) {
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil || math.IsInf(v, 0)
}
