// SPDX-License-Identifier: Apache-2.0

package podlog

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// recorded returns the Pods with logs on this machine that have a name, or were made for an object
// of that name: <logs>/<namespace>/<pod>/<container>/<attempt>.log.
func recorded(logs, namespace, name string) []candidate {
	if logs == "" {
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(logs, namespace))
	if err != nil {
		return nil // nothing was printed in this namespace
	}
	var pods []candidate
	for _, entry := range entries {
		var written time.Time
		for _, file := range recordedContainers(logs, namespace, entry.Name()) {
			if file.written.After(written) {
				written = file.written
			}
		}
		if c, ok := recordedAs(entry.Name(), name, written); ok && !written.IsZero() {
			pods = append(pods, c)
		}
	}
	return pods
}

// recordedFile is the newest log of a container.
type recordedFile struct {
	container, path string
	attempt         int
	written         time.Time
}

// recordedContainers returns the newest log of each container of a Pod, that which was written last first.
func recordedContainers(logs, namespace, pod string) []recordedFile {
	paths, err := filepath.Glob(filepath.Join(logs, namespace, pod, "*", "*.log"))
	if err != nil {
		return nil
	}
	newest := map[string]recordedFile{}
	for _, path := range paths {
		attempt, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(path), ".log"))
		info, failed := os.Stat(path)
		if err != nil || failed != nil {
			continue
		}
		file := recordedFile{container: filepath.Base(filepath.Dir(path)), path: path, attempt: attempt, written: info.ModTime()}
		if last, ok := newest[file.container]; !ok || attempt > last.attempt {
			newest[file.container] = file
		}
	}
	var files []recordedFile
	for _, file := range newest {
		files = append(files, file)
	}
	slices.SortFunc(files, func(a, b recordedFile) int {
		return cmp.Or(b.written.Compare(a.written), cmp.Compare(a.container, b.container))
	})
	return files
}
