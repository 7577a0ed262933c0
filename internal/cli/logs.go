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

	jobset "diwan.dev/diwan/api/jobset/v1alpha2"
	v1 "diwan.dev/diwan/api/kubeflow/v1"
	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	trainer "diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/cli/follow"
	"diwan.dev/diwan/internal/cli/progress"
	"diwan.dev/diwan/internal/localcluster"
)

const (
	// tellFailures is how many failures are shown with details: more would say the same again.
	tellFailures = 3
	// tellWarnings is how many different warnings of the cluster are shown.
	tellWarnings = 5
	// tailLines and tailBytes bound what is shown of a log's end.
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
		e.Trial == nil && !e.ID.Searches() && e.Condition == progress.ConditionFailed
	if !failed {
		t.show.event(e, nil)
		return
	}
	if t.failures++; t.failures > tellFailures && !t.verbose {
		t.show.event(e, nil)
		return
	}
	name := e.ID.Name
	if e.Trial != nil {
		name = e.Trial.Name
	}
	t.show.event(e, t.details(e.ID.Namespace, name))
}

// details are the last lines that the Pods of a name printed, where that can be told.
func (t *teller) details(namespace, name string) []string {
	if !t.target.local() {
		return nil
	}
	path := newestLog(t.target.home, namespace, name)
	if path == "" {
		return nil
	}
	return tail(path)
}

// warn shows a warning of the cluster, once, and no more than a few different ones.
func (t *teller) warn(text string) {
	if t.target.home != "" && strings.Contains(text, "Insufficient cpu") {
		text += " (`diwan up --cpus N` lets Pods share processors)"
	}
	if t.warned[text] || len(t.warned) >= tellWarnings && !t.verbose {
		return
	}
	t.warned[text] = true
	t.show.note("warning: " + text)
}

// newestLog is the newest log file with anything in it of the Pods of a name on this machine;
// "" without one.
func newestLog(home localcluster.Home, namespace, name string) string {
	pods, err := os.ReadDir(filepath.Join(home.Logs(), namespace))
	if err != nil {
		return ""
	}
	var newest string
	var at int64
	for _, pod := range pods {
		if !follow.Belongs(pod.Name(), name) {
			continue
		}
		files, err := filepath.Glob(filepath.Join(home.Logs(), namespace, pod.Name(), "*", "*.log"))
		if err != nil {
			continue
		}
		for _, file := range files {
			if info, err := os.Stat(file); err == nil && info.Size() > 0 && (newest == "" || info.ModTime().UnixNano() > at) {
				newest, at = file, info.ModTime().UnixNano()
			}
		}
	}
	return newest
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
func placeOfLogs(t *target, v progress.View) string {
	name, selector := v.ID.Name, "batch.kubernetes.io/job-name="+v.ID.Name
	if v.ID.Searches() {
		if v.Best == nil {
			return experimentLogs(t, v)
		}
		name, selector = v.Best.Name, kubeflow.LabelTrial+"="+v.Best.Name
	} else if v.ID.Kind == trainer.TrainJobKind {
		selector = jobset.LabelJobSetName + "=" + v.ID.Name
	} else if v.ID.Kind != "Job" {
		selector = v1.LabelJobName + "=" + v.ID.Name
	}
	switch {
	case t.local():
		return newestLog(t.home, v.ID.Namespace, name)
	case v.ID.Kind == "Pod":
		return fmt.Sprintf("kubectl logs -n %s %s", v.ID.Namespace, name)
	default:
		return fmt.Sprintf("kubectl logs -n %s -l %s", v.ID.Namespace, selector)
	}
}

// experimentLogs is the directory of the logs of an experiment's namespace, if it has any.
func experimentLogs(t *target, v progress.View) string {
	if !t.local() {
		return ""
	}
	dir := filepath.Join(t.home.Logs(), v.ID.Namespace)
	entries, err := os.ReadDir(dir)
	if err != nil || !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return follow.Belongs(e.Name(), v.ID.Name) }) {
		return ""
	}
	return filepath.Join(dir, v.ID.Name+"-*")
}
