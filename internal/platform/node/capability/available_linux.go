// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Available returns what this process can give to a program that it executes as root of
// its own user namespace: what it has and its bounding set lets through.
func Available() (Set, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var words [2]unix.CapUserData
	if err := unix.Capget(&header, &words[0]); err != nil {
		return 0, fmt.Errorf("cannot read the capabilities of this process: %w", err)
	}
	var bounding Set
	for bit := range 64 {
		has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(bit), 0, 0, 0)
		if errors.Is(err, unix.EINVAL) { // the kernel has no more
			break
		}
		if err != nil {
			return 0, fmt.Errorf("cannot read the bounding set of this process: %w", err)
		}
		if has == 1 {
			bounding |= 1 << bit
		}
	}
	permitted := Set(words[0].Permitted) | Set(words[1].Permitted)<<32
	return permitted & bounding, nil
}
