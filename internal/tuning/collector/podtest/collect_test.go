// SPDX-License-Identifier: Apache-2.0

package podtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

const file = "metricsCollector: {collector: {kind: File}, source: {fileSystemPath: {kind: File, format: %s, path: /var/log/katib/metrics.log}}}"

// TestPodsCollect runs trials of each kind of collector in Pods on a node that
// collects nothing.
func TestPodsCollect(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for name, c := range map[string]struct {
		reason          string
		spec, container string
		end             v1beta1.ConditionType
		loss, acc       []string
	}{
		"output": {
			"what a program prints, also without an end of the line",
			"", `command: [sh, -c, "echo $1; echo acc=0.5 >&2; printf loss=0.25", sh, "loss=0.5"]`,
			v1beta1.ConditionSucceeded, []string{"0.5", "0.25"}, []string{"0.5"},
		},
		"arguments": {
			"arguments and variables stay as they are",
			"", `{command: [sh, -c, 'echo loss=$0 "acc=$(X)"; exit 0'], args: [$(X)], env: [{name: X, value: "7"}]}`,
			v1beta1.ConditionSucceeded, []string{"7"}, []string{"7"},
		},
		"fails": {
			"a program that fails is a trial that failed, with what it printed",
			"", `command: [sh, -c, "echo loss=3; exit 7"]`,
			v1beta1.ConditionFailed, []string{"3"}, nil,
		},
		"nothing": {
			"no metrics",
			"", `command: ["true"]`,
			v1beta1.ConditionMetricsUnavailable, nil, nil,
		},
		"stopped": {
			"a rule stops a trial by what its Pod reports",
			"earlyStoppingRules: [{name: loss, value: '5', comparison: greater, startStep: 2}]", `command: [sh, -c, "for i in 9 8 7; do echo loss=$i; done; sleep 1000"]`,
			v1beta1.ConditionEarlyStopped, []string{"9", "8", "7"}, nil,
		},
		"text": {
			"a file that the program writes",
			fmt.Sprintf(file, "TEXT"), `command: [sh, -c, "echo loss=9; echo loss=1 >/var/log/katib/metrics.log"]`,
			v1beta1.ConditionSucceeded, []string{"1"}, nil,
		},
		"json": {
			"a file of JSON",
			fmt.Sprintf(file, "JSON"), `command: [sh, -c, "echo '{\"loss\": \"2\", \"acc\": 1}' >/var/log/katib/metrics.log"]`,
			v1beta1.ConditionSucceeded, []string{"2"}, []string{"1"},
		},
		"served": {
			"a page that the program serves on loopback",
			"metricsCollector: {collector: {kind: PrometheusMetric}}",
			`command: [python3, -c, "import http.server, threading\nclass H(http.server.BaseHTTPRequestHandler):\n  def do_GET(self):\n    self.send_response(200); self.end_headers(); self.wfile.write(b'loss 4\\n')\n  def log_message(*a): pass\ns = http.server.HTTPServer(('127.0.0.1', 8080), H)\nthreading.Timer(3, s.shutdown).start()\ns.serve_forever()"]`,
			v1beta1.ConditionSucceeded, []string{"4"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := *l
			l.t = t
			l.trial(name, c.spec, c.container)
			trial := l.ended(name, time.Minute)
			if !trial.Status.Conditions.IsTrue(c.end) {
				t.Errorf("%s: the trial has %+v, want %s", c.reason, trial.Status.Conditions, c.end)
			}
			if loss, acc := l.values(name, "loss"), l.values(name, "acc"); !slices.Equal(loss, c.loss) || !slices.Equal(acc, c.acc) {
				t.Errorf("%s: loss %q and acc %q, want %q and %q\ncollector: %s\nprogram: %s", c.reason, loss, acc, c.loss, c.acc, l.log(name, "metrics-logger-and-collector"), l.log(name, "main"))
			}
		})
	}
}
