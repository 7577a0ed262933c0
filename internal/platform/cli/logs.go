// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"diwan.dev/diwan/internal/platform/cli/follow"
	"diwan.dev/diwan/internal/platform/cli/progress"
)

const (
	// tellFailures is how many failures are shown with details: more would say the same again.
	tellFailures = 3
	// tellWarnings is how many different warnings of the cluster are shown.
	tellWarnings = 5
	// tailLines and tailBytes limit what is shown of a log's end.
	tailLines = 5
	tailBytes = 16 << 10
)

// teller shows events, the first failures among them with the end of the container's log.
type teller struct {
	target   *target
	show     display
	verbose  bool
	failures int
	warned   map[string]bool
}

// tell shows one event.
func (t *teller) tell(e progress.Event) {
	failed := e.Trial != nil && (e.Trial.State == progress.Failed || e.Trial.State == progress.MetricsUnavailable) ||
		e.Trial == nil && e.Unit != progress.Trials && e.Condition == progress.ConditionFailed
	if !failed {
		t.show.event(e, nil)
		return
	}
	if t.failures++; t.failures > tellFailures && !t.verbose {
		t.show.event(e, nil)
		return
	}
	t.show.event(e, t.details(e))
}

// details are the last lines that what failed printed, where that can be told: a trial that reported no
// metric in the Pod that should have, of others the one that wrote last, for any may be the cause.
func (t *teller) details(e progress.Event) []string {
	if !t.target.local() {
		return nil
	}
	w := wanted{namespace: e.ID.Namespace, name: e.ID.Name}
	if e.Trial != nil {
		w.name = e.Trial.Name
		if e.Trial.State == progress.MetricsUnavailable {
			w = reporter(e.ID.Namespace, e.Trial)
		}
	}
	path := w.log(t.target.home)
	if path == "" {
		return nil
	}
	return tail(path)
}

// warn shows a warning of the cluster, once, and no more than a few different ones.
func (t *teller) warn(text string) {
	if t.target.home != "" {
		switch {
		case strings.Contains(text, "Insufficient cpu"):
			text += " (`diwan up --cpus N` lets Pods share CPUs)"
		case strings.Contains(text, "Insufficient memory"):
			text += " (`diwan up --memory SIZE` lets Pods share memory)"
		}
	}
	if t.warned[text] || len(t.warned) >= tellWarnings && !t.verbose {
		return
	}
	t.warned[text] = true
	t.show.note("warning: " + text)
}

// tail is the last lines of a file, made harmless to a terminal.
func tail(path string) []string {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	if size, err := file.Seek(0, io.SeekEnd); err != nil || size == 0 {
		return nil
	} else if _, err := file.Seek(max(0, size-tailBytes), io.SeekStart); err != nil {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(file, tailBytes))
	if err != nil {
		return nil
	}
	var lines []string
	for line := range bytes.Lines(text) {
		if line := strings.TrimRight(progress.Clean(string(line)), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-tailLines):]
}

// placeOfLogs says where to read what the best trial, or the object itself, printed.
func placeOfLogs(t *target, v progress.View, kind *follow.Kind) string {
	searches := v.Unit == progress.Trials
	switch {
	case searches && v.Best == nil:
		return logsOfTrials(t, v, kind)
	case searches && t.local():
		return reporter(v.ID.Namespace, v.Best).log(t.home)
	case searches:
		return fmt.Sprintf("kubectl logs -n %s -l %s=%s", v.ID.Namespace, kind.UnitLabel, v.Best.Name)
	case t.local():
		return wanted{namespace: v.ID.Namespace, name: v.ID.Name, first: true}.log(t.home)
	case kind.PodLabel == "":
		return fmt.Sprintf("kubectl logs -n %s %s", v.ID.Namespace, v.ID.Name)
	default:
		return fmt.Sprintf("kubectl logs -n %s -l %s=%s", v.ID.Namespace, kind.PodLabel, v.ID.Name)
	}
}

// logsOfTrials is where the logs of a search's trials are, if it has any.
func logsOfTrials(t *target, v progress.View, kind *follow.Kind) string {
	if !t.local() {
		return ""
	}
	dir := filepath.Join(t.home.Logs(), v.ID.Namespace)
	entries, err := os.ReadDir(dir)
	if err != nil || !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return kind.Made(e.Name(), v.ID.Name) }) {
		return ""
	}
	return filepath.Join(dir, v.ID.Name+"-*")
}
