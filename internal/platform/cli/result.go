// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"diwan.dev/diwan/internal/platform/cli/progress"
)

// result prints how the works ended. It fails with exit code 1 if one of them did not succeed.
func (r *runner) result(t *target, asJSON bool) error {
	r.show.close()
	views := r.views()
	if asJSON {
		reports := make([]progress.Report, len(views))
		for i, v := range views {
			reports[i] = progress.NewReport(v)
		}
		text, err := progress.Encode(reports)
		if err != nil {
			return err
		}
		if _, err := r.streams.Out.Write(text); err != nil {
			return fmt.Errorf("cannot write the result: %w", err)
		}
	} else if err := r.printResult(t, views); err != nil {
		return err
	}
	for _, v := range views {
		if v.Status.Condition != progress.ConditionSucceeded {
			return &ExitError{exitFailed}
		}
	}
	return nil
}

// printResult prints the result as text, and the next steps.
func (r *runner) printResult(t *target, views []progress.View) error {
	var lines []string
	style := styleOf(r.streams.Out)
	style.Width = 0 // a result that is copied or piped is whole
	for _, v := range views {
		if len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, progress.Result(v, progress.Extra{Logs: placeOfLogs(t, v, r.house.Followed().Named(v.ID.Kind))}, style)...)
	}
	if len(views) == 0 {
		lines = append(lines, fmt.Sprintf("applied %d objects; none of them is of a kind that completes", len(r.objects)))
	}
	if !r.options.quiet {
		lines = append(lines, r.nextSteps(t, views)...)
	}
	if _, err := fmt.Fprintln(r.streams.Out, strings.Join(lines, "\n")); err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	return nil
}

// nextSteps returns suggested next commands, below a heading and aligned.
func (r *runner) nextSteps(t *target, views []progress.View) []string {
	var steps [][2]string
	add := func(command, what string) { steps = append(steps, [2]string{command, what}) }
	if len(views) > 0 {
		v, namespace := views[0], ""
		if v.ID.Namespace != "default" {
			namespace = " -n " + v.ID.Namespace
		}
		if v.Unit == progress.Trials {
			add(fmt.Sprintf("diwan kubectl%s get trials", namespace), "every trial")
		} else {
			add(fmt.Sprintf("diwan kubectl%s describe %s %s", namespace, strings.ToLower(v.ID.Kind), v.ID.Name), "show details")
		}
		add("diwan run --restart "+strings.Join(r.files, " "), "delete this result and start over")
	}
	if t.owned != nil {
		add("diwan up", "keep the local cluster running")
	}
	longest := 0
	for _, step := range steps {
		longest = max(longest, len(step[0]))
	}
	lines := []string{"", "next"}
	for _, step := range steps {
		lines = append(lines, fmt.Sprintf("  %-*s   %s", longest, step[0], step[1]))
	}
	return lines
}
