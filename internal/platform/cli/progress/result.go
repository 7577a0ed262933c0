// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Extra is what a [Result] shows in addition to a view.
type Extra struct {
	// Logs is the file or command that shows the output of the best trial, or of the object; "" omits the line.
	Logs string
}

// Result renders work that has ended, or that is no longer followed, as the lines of a
// block.
func Result(v View, extra Extra, style Style) []string {
	lines := []string{outcome(v, style), ""}
	add := func(name, value string) {
		if value != "" {
			lines = append(lines, fmt.Sprintf("  %-11s %s", name, value))
		}
	}
	if v.Best != nil {
		add("best", style.paint(green, style.paint(bold, Clean(v.Objective.Metric)+" = "+Clean(v.Best.Value))))
		add("trial", v.Best.Name)
		for i, text := range columnsOf(v.Best.Parameters) {
			name := ""
			if i == 0 {
				name = "parameters"
			}
			add(name, text)
		}
	}
	if v.Unit != Itself {
		add(string(v.Unit)+"s", tally(v.Counts, style))
	}
	add("logs", extra.Logs)
	if chart := labelled(v, style, 4); chart != nil {
		lines = append(lines, "")
		lines = append(lines, chart...)
	}
	return lines
}

// outcome is the first line of a result: what ended, how, after how long and why.
func outcome(v View, style Style) string {
	text := fmt.Sprintf("%s %s/%s ", v.ID.Kind, v.ID.Namespace, v.ID.Name)
	switch v.Status.Condition {
	case ConditionSucceeded:
		text += style.paint(green, "succeeded") + " in " + took(v.Elapsed)
	case ConditionFailed:
		text += style.paint(red, "failed") + " after " + took(v.Elapsed)
	default:
		text += "is not finished after " + took(v.Elapsed)
	}
	return text + because(v.Status.Reason, v.Status.Message)
}

// columnsOf writes parameters one a line, values under each other.
func columnsOf(parameters []Parameter) []string {
	longest := 0
	for _, p := range parameters {
		longest = max(longest, utf8.RuneCountInString(p.Name))
	}
	lines := make([]string, len(parameters))
	for i, p := range parameters {
		lines[i] = fmt.Sprintf("%-*s = %s", longest, Clean(p.Name), Clean(p.Value))
	}
	return lines
}

// tally writes the counts that are not zero.
func tally(c Counts, style Style) string {
	var parts []string
	for _, part := range []struct {
		n     int
		text  string
		color string
	}{
		{c.Succeeded, "succeeded", ""},
		{c.Failed, "failed", red},
		{c.MetricsUnavailable, "without metric", red},
		{c.EarlyStopped, "stopped early", ""},
		{c.Killed, "killed", red},
		{c.Running, "running", ""},
		{c.Pending, "waiting", ""},
	} {
		if part.n == 0 {
			continue
		}
		text := fmt.Sprintf("%d %s", part.n, part.text)
		if part.color != "" {
			text = style.paint(part.color, text)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// Report is the JSON form of a result, one object for each followed object.
type Report struct {
	Kind      string    `json:"kind"`
	Name      string    `json:"name"`
	Namespace string    `json:"namespace"`
	Condition Condition `json:"condition"`
	Reason    string    `json:"reason"`
	Message   string    `json:"message,omitempty"`
	// Trials counts the trials of a search by state.
	Trials *TrialCounts `json:"trials,omitempty"`
	// Pods counts a job's Pods by state.
	Pods *PodCounts `json:"pods,omitempty"`
	// Jobs counts the Jobs of what consists of such by state.
	Jobs *PodCounts `json:"jobs,omitempty"`
	// Best is the best trial of a search; null without one.
	Best *Best `json:"best"`
	// Seconds is how long the work took.
	Seconds float64 `json:"seconds"`
}

// TrialCounts are numbers of trials by state.
type TrialCounts struct {
	Total              int `json:"total"`
	Succeeded          int `json:"succeeded"`
	Failed             int `json:"failed"`
	MetricsUnavailable int `json:"metricsUnavailable"`
	EarlyStopped       int `json:"earlyStopped"`
	Killed             int `json:"killed"`
	Running            int `json:"running"`
	Pending            int `json:"pending"`
}

// PodCounts are numbers of Pods or Jobs by state.
type PodCounts struct {
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Running   int `json:"running"`
	Pending   int `json:"pending"`
}

// Best is the best trial of a search.
type Best struct {
	Trial      string            `json:"trial"`
	Parameters map[string]string `json:"parameters"`
	Metric     string            `json:"metric"`
	// Value is a number where the metric is one, else text.
	Value any `json:"value"`
}

// NewReport returns the JSON form of a view.
func NewReport(v View) Report {
	r := Report{
		Kind: v.ID.Kind, Name: v.ID.Name, Namespace: v.ID.Namespace,
		Condition: v.Status.Condition, Reason: v.Status.Reason, Message: v.Status.Message,
		Seconds: float64(v.Elapsed.Round(time.Millisecond)) / float64(time.Second),
	}
	c := v.Counts
	switch v.Unit {
	case Trials:
		r.Trials = &TrialCounts{
			Total: c.Total(), Succeeded: c.Succeeded, Failed: c.Failed, MetricsUnavailable: c.MetricsUnavailable,
			EarlyStopped: c.EarlyStopped, Killed: c.Killed, Running: c.Running, Pending: c.Pending,
		}
	case Jobs:
		r.Jobs = &PodCounts{Succeeded: c.Succeeded, Failed: c.Failed, Running: c.Running, Pending: c.Pending}
	case Pods:
		r.Pods = &PodCounts{Succeeded: c.Succeeded, Failed: c.Failed, Running: c.Running, Pending: c.Pending}
	}
	if v.Best != nil {
		r.Best = &Best{Trial: v.Best.Name, Parameters: map[string]string{}, Metric: v.Objective.Metric, Value: v.Best.Value}
		for _, p := range v.Best.Parameters {
			r.Best.Parameters[p.Name] = p.Value
		}
		if number, ok := v.Best.number(); ok {
			r.Best.Value = number
		}
	}
	return r
}

// Encode renders reports as JSON: one object, or an array where there are several.
func Encode(reports []Report) ([]byte, error) {
	var value any = reports
	if len(reports) == 1 {
		value = reports[0]
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("cannot write the result as JSON: %w", err)
	}
	return append(text, '\n'), nil
}
