// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/observation"
)

func TestReadPage(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason  string
		page    string
		metrics []string
		want    map[string]sample
		unclear string
		err     string
	}{
		"Gauge":     {reason: "A gauge has a value.", page: "# HELP loss The loss.\n# TYPE loss gauge\nloss 0.5\nother 1\n", want: map[string]sample{"loss": {value: "0.5"}}},
		"Untyped":   {reason: "So has a sample without a type.", page: "loss 1e-3\n", want: map[string]sample{"loss": {value: "0.001"}}},
		"Counter":   {reason: "And a counter, under the name of its sample.", page: "# TYPE loss_total counter\nloss_total 3\n", metrics: []string{"loss_total"}, want: map[string]sample{"loss_total": {value: "3"}}},
		"NaN":       {reason: "A diverged run shows.", page: "loss NaN\naccuracy +Inf\n", want: map[string]sample{"loss": {value: "NaN"}, "accuracy": {value: "+Inf"}}},
		"Time":      {reason: "A sample may tell its time, in milliseconds.", page: "loss 1 1500\n", want: map[string]sample{"loss": {value: "1", at: time.UnixMilli(1500).UTC()}}},
		"OneSeries": {reason: "The labels of the only series need not be named.", page: `loss{job="a"} 1` + "\n", want: map[string]sample{"loss": {value: "1"}}},
		"Plain":     {reason: "A series without labels is meant by the name.", page: "loss{phase=\"test\"} 1\nloss 2\n", want: map[string]sample{"loss": {value: "2"}}},
		"Unclear":   {reason: "Of several one must be named.", page: "loss{phase=\"test\"} 1\nloss{phase=\"train\"} 2\n", want: map[string]sample{}, unclear: `loss has 2 series: name one as the metric, for example loss{phase="test"}`},
		"Labels":    {reason: "As this does.", page: "loss{b=\"2\",phase=\"test\"} 1\nloss{phase=\"train\"} 2\n", metrics: []string{`loss{b="2", phase="test"}`, `loss{phase="train"}`}, want: map[string]sample{`loss{b="2", phase="test"}`: {value: "1"}, `loss{phase="train"}`: {value: "2"}}},
		"NoBlank":   {reason: "With or without blanks.", page: "loss{b=\"2\",phase=\"test\"} 1\nloss 3\n", metrics: []string{`loss{b="2",phase="test"}`}, want: map[string]sample{`loss{b="2",phase="test"}`: {value: "1"}}},
		"Histogram": {reason: "The parts of a histogram have names.", page: "# TYPE loss histogram\nloss_bucket{le=\"1\"} 1\nloss_bucket{le=\"+Inf\"} 2\nloss_sum 3\nloss_count 2\n", metrics: []string{"loss_sum", `loss_bucket{le="1"}`}, want: map[string]sample{"loss_sum": {value: "3"}, `loss_bucket{le="1"}`: {value: "1"}}},
		"Summary":   {reason: "Those of a summary too.", page: "# TYPE loss summary\nloss{quantile=\"0.5\"} 4\nloss_sum 3\nloss_count 2\n", metrics: []string{`loss{quantile="0.5"}`, "loss_count"}, want: map[string]sample{`loss{quantile="0.5"}`: {value: "4"}, "loss_count": {value: "2"}}},
		"Nothing":   {reason: "A page may be empty.", want: map[string]sample{}},
		"CutShort":  {reason: "A number that was cut is none.", page: "accuracy 1\nloss 0.12", err: "line 2"},
		"Malformed": {reason: "The error says where.", page: "accuracy 1\nloss is low\n", err: "line 2"},
		"HTML":      {reason: "An error page of a server is no page of metrics.", page: "<!DOCTYPE html>\n<html>", err: "line 1"},
		"Braces":    {reason: "A page at which the parser has panicked is no page.", page: "{}", err: "not in Prometheus's text format"},
		"Twice":     {reason: "Of a series that comes twice, against the rules, the first counts.", page: "loss 1\nloss 2\n", want: map[string]sample{"loss": {value: "1"}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			metrics := tc.metrics
			if metrics == nil {
				metrics = []string{"loss", "accuracy"}
			}
			got, unclear, err := readPage([]byte(tc.page), metrics)
			if err == nil != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("%s error %v, want %q in it", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(sample{})); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			if text := strings.Join(unclear, "; "); text != tc.unclear {
				t.Errorf("%s unclear: %q, want %q", tc.reason, text, tc.unclear)
			}
		})
	}
}

// FuzzPage checks that whatever a program serves gives points that a store
// takes.
func FuzzPage(f *testing.F) {
	for _, page := range []string{"loss 1\n", "# TYPE loss histogram\nloss_bucket{le=\"1\"} 1\nloss_sum 1\n", "loss{a=\"\\n\"} NaN 1e3\n", "{\"loss\",a=\"b\"} 1\n", "loss 1 9223372036854775807\n", "# TYPE loss summary\nloss{quantile=\"x\"} 1\n", "# TYPE loss gaugehistogram\nloss_bucket{le=\"1\"} 1\n"} {
		f.Add([]byte(page))
	}
	f.Fuzz(func(t *testing.T, page []byte) {
		found, _, err := readPage(page, []string{"loss", "loss_sum", `loss{a="b"}`})
		if err != nil {
			return
		}
		for metric, s := range found {
			at := s.at
			if at.IsZero() {
				at = now()
			}
			batch := observation.Batch{Source: "page", To: 1, Points: []observation.Point{{Time: at, Metric: metric, Value: s.value}}}
			if err := batch.Check(); err != nil || s.value == "" {
				t.Errorf("%q: %v", page, err)
			}
		}
	})
}
