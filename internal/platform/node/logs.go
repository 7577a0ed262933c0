// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/platform/node/containerlog"
)

// logDir is where the logs of a container's runs are.
func (n *Node) logDir(namespace, pod, name string) string {
	return filepath.Join(n.cfg.LogDir, namespace, pod, name)
}

// previous ends the name of the directory with the logs of the last Pod of the
// same name, such as the replica of a training job that this one replaces.
const previous = ".previous"

// newLog is the path of a run's log. The first run of a Pod moves the logs of an
// earlier Pod of the same name aside: they would be taken for its own.
func (n *Node) newLog(pod *corev1.Pod, name string, attempt int) (string, error) {
	dir := n.logDir(pod.Namespace, pod.Name, name)
	if attempt == 0 {
		err := os.RemoveAll(dir + previous)
		if err == nil {
			err = os.Rename(dir, dir+previous)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("cannot move the logs of an earlier Pod aside: %w", err)
		}
	}
	return filepath.Join(dir, strconv.Itoa(attempt)+".log"), nil
}

// attempts lists the runs with logs, the last one first.
func (n *Node) attempts(namespace, pod, name string) []int {
	var found []int
	entries, _ := os.ReadDir(n.logDir(namespace, pod, name))
	for _, e := range entries {
		if text, ok := strings.CutSuffix(e.Name(), ".log"); ok {
			if i, err := strconv.Atoi(text); err == nil {
				found = append(found, i)
			}
		}
	}
	slices.Sort(found)
	slices.Reverse(found)
	return found
}

// nextAttempt is the number of a container's next run, by the API's count of
// restarts and by the logs.
func (n *Node) nextAttempt(pod *corev1.Pod, name string) int {
	if pod.Status.StartTime == nil {
		return 0
	}
	if found := n.attempts(pod.Namespace, pod.Name, name); len(found) > 0 {
		return found[0] + 1
	}
	return 0
}

// oldLog is a log on disk that no Pod of this node writes to.
type oldLog struct {
	path string
	size int64
	at   time.Time
}

// cleanLogs removes logs that are too old, and the oldest beyond the bound, but
// none of Pods that this node works on.
func (n *Node) cleanLogs() {
	busy := map[string]bool{}
	for _, w := range n.allWorkers() {
		pod := w.current()
		busy[filepath.Join(n.cfg.LogDir, pod.Namespace, pod.Name)] = true
	}
	var logs []oldLog
	var sum int64
	filepath.WalkDir(n.cfg.LogDir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case e.IsDir() && busy[path]:
			return fs.SkipDir
		case e.IsDir() || !strings.HasSuffix(path, ".log"):
			return nil
		}
		if info, err := e.Info(); err == nil {
			logs = append(logs, oldLog{path, diskSize(info), info.ModTime()})
			sum += diskSize(info)
		}
		return nil
	})
	slices.SortFunc(logs, func(a, b oldLog) int { return a.at.Compare(b.at) })
	for _, l := range logs {
		if clock().Sub(l.at) < n.cfg.LogAge && sum <= n.cfg.LogBytes {
			return
		}
		if err := containerlog.Remove(l.path); err != nil {
			n.cfg.Log.Error(err, "cannot remove an old log")
			continue
		}
		sum -= l.size
		for dir := filepath.Dir(l.path); dir != n.cfg.LogDir && os.Remove(dir) == nil; {
			dir = filepath.Dir(dir)
		}
	}
}
