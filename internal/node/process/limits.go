// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"

	"diwan.dev/diwan/internal/node/container"
)

// unlimited are the warnings of a run whose limits cannot be held.
func unlimited(l container.Limits, why string) []string {
	if l.Memory > 0 || l.CPU > 0 {
		return []string{fmt.Sprintf("the limits on memory and CPU are not enforced: %s", why)}
	}
	return nil
}
