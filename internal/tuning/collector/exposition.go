// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// sample is a number on a page in Prometheus's text format.
type sample struct {
	value string
	at    time.Time // the zero time where the page does not say
}

// readPage parses the metrics on a page. A metric's name is a sample's name; if
// several samples have it, it means the one without labels, or the one with the
// labels in the metric's name, as in loss{phase="test"}. unclear lists
// ambiguous metrics.
func readPage(text []byte, metrics []string) (found map[string]sample, unclear []string, err error) {
	samples, err := parsePage(text)
	if err != nil {
		return nil, nil, err
	}
	byName := map[string][]*model.Sample{}
	for _, s := range samples {
		name := string(s.Metric[model.MetricNameLabel])
		byName[name] = append(byName[name], s)
	}
	found = map[string]sample{}
	for _, metric := range metrics {
		s, problem := choose(byName, metric)
		if problem != "" {
			unclear = append(unclear, problem)
		}
		if s == nil {
			continue
		}
		value := sample{value: strconv.FormatFloat(float64(s.Value), 'g', -1, 64)}
		if s.Timestamp != noTime {
			value.at = storable(s.Timestamp.Time().UTC(), time.Time{})
		}
		found[metric] = value
	}
	return found, unclear, nil
}

// noTime is the time of a sample without a timestamp.
const noTime model.Time = math.MinInt64

var errNotAPage = errors.New("the page is not in Prometheus's text format")

// parsePage reads the samples of a page. A page at which the parser panics, as
// versions of it did at {}, is none.
func parsePage(text []byte) (samples model.Vector, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			samples, err = nil, errNotAPage
		}
	}()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotAPage, err)
	}
	return expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: noTime}, slices.Collect(maps.Values(families))...)
}

// choose returns the sample that a metric is, or nil. problem is "" unless it
// could be several.
func choose(byName map[string][]*model.Sample, metric string) (s *model.Sample, problem string) {
	name, _, labelled := strings.Cut(metric, "{")
	samples := byName[name]
	if exact := byName[metric]; len(exact) > 0 {
		samples, labelled = exact, false
	}
	for _, s := range samples {
		switch {
		case labelled && strings.ReplaceAll(s.Metric.String(), `", `, `",`) == strings.ReplaceAll(metric, `", `, `",`):
			return s, ""
		case !labelled && (len(samples) == 1 || len(s.Metric) == 1):
			return s, ""
		}
	}
	if labelled || len(samples) == 0 {
		return nil, ""
	}
	forms := make([]string, len(samples))
	for i, s := range samples {
		forms[i] = s.Metric.String()
	}
	slices.Sort(forms)
	return nil, fmt.Sprintf("%s has %d series: name one as the metric, for example %s", metric, len(samples), shorten(forms[0]))
}
