// SPDX-License-Identifier: Apache-2.0

package process

import (
	"diwan.dev/diwan/internal/platform/node/cgroup"
	"diwan.dev/diwan/internal/platform/node/container"
)

// Usage measures the run's processes.
func (r *run) Usage() (container.Usage, error) {
	if r.runtime.groups.Unified(r.record.Groups) {
		return cgroup.Usage(cgroup.Members(r.record.Groups[0])), nil
	}
	return cgroup.Usage(marked(r.record.Spec.ID)), nil
}
