// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"

	"diwan.dev/diwan/bench/markdown"
)

// metrics is what the API server tells of the process at one moment.
type metrics struct {
	// requests counts the answered requests by what they ask for, watches left out.
	requests map[request]float64
	// live is the heap's memory in bytes that the last collection of garbage kept.
	live float64
}

// request is a kind of request to the API server, with the answer's code if that
// is a refusal.
type request struct{ verb, resource, subresource, refusal string }

// String names the resource and its part: "GET pods/status (404)".
func (r request) String() string {
	text := r.verb + " " + r.resource
	if r.subresource != "" {
		text += "/" + r.subresource
	}
	if r.refusal != "" {
		text += " (" + r.refusal + ")"
	}
	return text
}

// readMetrics asks the API server for its metrics.
func (s *server) readMetrics(ctx context.Context) (metrics, error) {
	kube, err := kubernetes.NewForConfig(s.config)
	if err != nil {
		return metrics{}, fmt.Errorf("cannot create a client: %w", err)
	}
	text, err := kube.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return metrics{}, fmt.Errorf("cannot read the API server's metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return metrics{}, fmt.Errorf("cannot parse the API server's metrics: %w", err)
	}
	m := metrics{requests: map[request]float64{}}
	for _, metric := range families["apiserver_request_total"].GetMetric() {
		of := map[string]string{}
		for _, label := range metric.GetLabel() {
			of[label.GetName()] = label.GetValue()
		}
		if of["verb"] == "WATCH" || of["resource"] == "" {
			continue
		}
		kind := request{verb: of["verb"], resource: of["resource"], subresource: of["subresource"]}
		if !strings.HasPrefix(of["code"], "2") {
			kind.refusal = of["code"]
		}
		m.requests[kind] += metric.GetCounter().GetValue()
	}
	for _, metric := range families["go_gc_heap_live_bytes"].GetMetric() {
		m.live = metric.GetGauge().GetValue()
	}
	return m, nil
}

// requestTable tells the requests a trial, most frequent first; those below one
// in a hundred trials are left out.
func requestTable(before, after metrics, trials int) string {
	type count struct {
		request
		each float64
	}
	var counts []count
	total := 0.0
	for kind, n := range after.requests {
		each := (n - before.requests[kind]) / float64(trials)
		total += each
		if each >= 0.01 {
			counts = append(counts, count{kind, each})
		}
	}
	slices.SortFunc(counts, func(a, b count) int {
		return cmp.Or(cmp.Compare(b.each, a.each), cmp.Compare(a.String(), b.String()))
	})
	rows := [][]string{{"request to the API server", "a trial"}}
	for _, c := range counts {
		rows = append(rows, []string{c.String(), fmt.Sprintf("%.2f", c.each)})
	}
	return markdown.Table(append(rows, []string{"all", fmt.Sprintf("%.2f", total)}))
}
