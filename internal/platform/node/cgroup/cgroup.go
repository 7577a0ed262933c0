// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"hash/fnv"

	"diwan.dev/diwan/internal/platform/node/container"
)

// groupPrefix begins the names of the cgroups of all runtimes.
const groupPrefix = "diwan."

// Name is the name of the parents of the cgroups of a runtime whose
// Config.Dir is dir.
func Name(dir string) string {
	hash := fnv.New32a()
	hash.Write([]byte(dir))
	return fmt.Sprintf("%s%08x", groupPrefix, hash.Sum32())
}

// unlimited are the warnings of a run whose limits cannot be held.
func unlimited(l container.Limits, why string) []string {
	if l.Memory > 0 || l.CPU > 0 {
		return []string{fmt.Sprintf("the limits on memory and CPU are not enforced: %s", why)}
	}
	return nil
}
