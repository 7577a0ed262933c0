// SPDX-License-Identifier: Apache-2.0

package observation

import "time"

// Unavailable stands for a value that a trial did not report, as in Katib.
const Unavailable = "unavailable"

// Summary is what one metric of a trial came to.
type Summary struct {
	// Min and Max are the least and the greatest value that is a number, as
	// the trial wrote them, or Unavailable where no value is a number.
	Min, Max string
	// Latest is the value with the latest time; of several with that time, the
	// one that arrived last. It need not be a number.
	Latest string
}

// Summarize computes the summary of each metric that has a point. The points
// of a metric must be in the order of their arrival or in that of
// [Store.Points].
//
// The rule is Katib's, except for "NaN" values: they count only for Latest,
// while in Katib one that comes first stays Min and Max forever.
func Summarize(points []Point) map[string]Summary {
	running := map[string]*summarizer{}
	for _, p := range points {
		s := running[p.Metric]
		if s == nil {
			s = &summarizer{Summary: Summary{Min: Unavailable, Max: Unavailable}}
			running[p.Metric] = s
		}
		s.add(p)
	}
	summaries := make(map[string]Summary, len(running))
	for metric, s := range running {
		summaries[metric] = s.Summary
	}
	return summaries
}

// summarizer is the running summary of one metric.
type summarizer struct {
	Summary
	min, max float64
	latest   time.Time
	some     bool // a point was added
	number   bool // one that is a number was added
}

func (s *summarizer) add(p Point) {
	if !s.some || !s.latest.After(p.Time) {
		s.Latest, s.latest = p.Value, p.Time
	}
	s.some = true
	v, ok := number(p.Value)
	if !ok {
		return
	}
	if !s.number || v < s.min {
		s.Min, s.min = p.Value, v
	}
	if !s.number || v > s.max {
		s.Max, s.max = p.Value, v
	}
	s.number = true
}
