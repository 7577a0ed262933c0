// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"diwan.dev/diwan/internal/platform/cli/follow"
	"diwan.dev/diwan/internal/platform/cli/progress"
	"diwan.dev/diwan/internal/platform/laptop"
)

// wanted specifies which of the logs that a trial's or job's Pods left on this machine to find.
type wanted struct {
	namespace, name string
	// first prefers the Pod that speaks for all: a master, a launcher, the first node or worker.
	first bool
	// replica, such as worker-1, is preferred to that, and container among those of one Pod; "" for any.
	replica, container string
}

// reporter is the log of the container whose metrics count for a trial.
func reporter(namespace string, trial *progress.Trial) wanted {
	return wanted{namespace: namespace, name: trial.Name, first: true, replica: trial.Replica, container: trial.Container}
}

// firsts are what follows the name of a job in that of the Pod which speaks for all, the best first.
var firsts = []string{"master-0", "chief-0", "launcher", "node-0-0", "worker-0"}

// log is the newest log file with anything in it of the best of the Pods; "" without one.
func (w wanted) log(home laptop.Home) string {
	dir := filepath.Join(home.Logs(), w.namespace)
	pods, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	type candidate struct {
		path    string
		rank    int // of the Pod
		other   int // 1 for another container than is wanted
		written int64
	}
	var found []candidate
	for _, pod := range pods {
		if !follow.Belongs(pod.Name(), w.name) {
			continue
		}
		files, err := filepath.Glob(filepath.Join(dir, pod.Name(), "*", "*.log"))
		if err != nil {
			continue
		}
		for _, file := range files {
			info, err := os.Stat(file)
			if err != nil || info.Size() == 0 {
				continue
			}
			c := candidate{path: file, rank: w.rank(pod.Name()), written: info.ModTime().UnixNano()}
			if w.container != "" && filepath.Base(filepath.Dir(file)) != w.container {
				c.other = 1
			}
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return slices.MinFunc(found, func(a, b candidate) int {
		return cmp.Or(a.rank-b.rank, a.other-b.other, cmp.Compare(b.written, a.written))
	}).path
}

// rank is how well a Pod fits, 0 best.
func (w wanted) rank(pod string) int {
	part, _ := strings.CutPrefix(pod, w.name+"-")
	is := func(replica string) bool { return part == replica || strings.HasPrefix(part, replica+"-") }
	if w.replica != "" && is(w.replica) {
		return 0
	}
	if i := slices.IndexFunc(firsts, is); w.first && i >= 0 {
		return i + 1
	}
	return len(firsts) + 1
}
