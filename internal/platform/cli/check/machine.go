// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/platform/node"
)

// containersLack returns what this machine lacks for the containers of a Pod.
func containersLack(f *node.Forecast, pod *corev1.Pod) []string {
	var lacks []string
	containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	for i := range containers {
		c := &containers[i]
		start, err := f.Container(pod, c)
		if err == nil {
			err = scriptLack(start)
		}
		if err != nil {
			lacks = append(lacks, fmt.Sprintf("container %s: %v", c.Name, err))
		}
	}
	return lacks
}

// interpreter are programs whose first argument, if it is no option, is a file to run.
var interpreter = regexp.MustCompile(`^(python[0-9.]*|torchrun|bash|sh|perl|Rscript|node|ruby)$`)

// scriptLack reports that the file is missing which an interpreter would run: what most often lacks
// where a manifest was written for an image.
func scriptLack(s *node.Start) error {
	if len(s.Args) < 2 || !interpreter.MatchString(filepath.Base(s.Args[0])) || strings.HasPrefix(s.Args[1], "-") {
		return nil
	}
	path, known := s.Path(s.Args[1])
	if !known {
		return nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot find the file %s that %s runs: create it, set workingDir, or map the container's image to files that contain it: diwan images map --file", path, s.Args[0])
	}
	return nil
}
