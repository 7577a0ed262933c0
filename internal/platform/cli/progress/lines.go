// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"strings"
)

// Opening is the line that says what is followed.
func Opening(v View) string {
	parts := []string{fmt.Sprintf("following %s %s/%s", strings.ToLower(v.ID.Kind), v.ID.Namespace, v.ID.Name)}
	if v.Status.Planned > 0 {
		parts = append(parts, count(v.Status.Planned, string(v.Unit)))
	}
	if v.Status.Parallel > 0 {
		parts = append(parts, fmt.Sprintf("%d at a time", v.Status.Parallel))
	}
	if v.Objective.Metric != "" {
		verb := "minimize"
		if v.Objective.Maximize {
			verb = "maximize"
		}
		parts = append(parts, verb+" "+Clean(v.Objective.Metric))
	}
	if ended := v.Counts.Ended(); ended > 0 && v.Status.Condition == "" {
		parts = append(parts, fmt.Sprintf("resuming after %d", ended))
	}
	return strings.Join(parts, ", ")
}

// Line renders an event as one line.
func Line(e Event, style Style) string {
	if e.Trial == nil {
		text := fmt.Sprintf("%s %s/%s %s", strings.ToLower(e.ID.Kind), e.ID.Namespace, e.ID.Name, strings.ToLower(string(e.Condition)))
		return style.fit(text + because(e.Reason, e.Message))
	}
	text := fmt.Sprintf("trial %s %s", e.Trial.Name, e.Trial.State)
	if e.Trial.Value != "" && e.Trial.State != Failed {
		text += fmt.Sprintf(": %s=%s", Clean(e.Metric), short(e.Trial.Value))
	} else if e.Trial.Message != "" {
		text += ": " + Clean(e.Trial.Message)
	}
	switch {
	case e.Best:
		text += " " + style.paint(green, "(best so far)")
	case e.Trial.Violates:
		text += " " + style.paint(dim, "(violates a constraint)")
	}
	if len(e.Trial.Parameters) > 0 {
		text += " " + style.paint(dim, assignments(e.Trial.Parameters, short))
	}
	return style.fit(text)
}

// Summary renders the progress of work on one line.
func Summary(v View, style Style) string {
	text := v.ID.Name + ": " + strings.Join(numbers(v, style), ", ")
	if v.Unit == Itself {
		text = v.ID.Name + ": " + podState(v)
	}
	if v.Best != nil {
		text += fmt.Sprintf(", best %s=%s", Clean(v.Objective.Metric), short(v.Best.Value))
	}
	text += ", " + clock(v.Elapsed) + " elapsed"
	if v.Remaining >= 0 {
		text += ", about " + roughly(v.Remaining) + " left"
	}
	return style.fit(text)
}

// because renders why something ended, with what parts it from the words before; "" when unknown.
// The messages of experiments say again that they ended: "Experiment has failed because …".
func because(reason, message string) string {
	if _, why, ok := strings.Cut(message, " because "); ok {
		return " because " + Clean(why)
	}
	switch {
	case reason == "" && message == "":
		return ""
	case message == "":
		return ": " + Clean(reason)
	case reason == "" || strings.Contains(message, reason):
		return ": " + Clean(message)
	default:
		return ": " + Clean(message) + " (" + Clean(reason) + ")"
	}
}

// podState describes a Pod that has not ended: that it is running, or why it is
// waiting.
func podState(v View) string {
	if v.Status.Message == "" && v.Status.Reason == "" && v.Counts.Pending == 0 {
		return "running"
	}
	return "waiting" + because(v.Status.Reason, v.Status.Message)
}
