// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// ThisMachine describes the machine on which this process runs, for a container with
// these capabilities in its bounding set.
func ThisMachine(capabilities []string) (Machine, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return Machine{}, fmt.Errorf("cannot ask for the version of the kernel: %w", err)
	}
	kernel, err := parseKernel(unix.ByteSliceToString(name.Release[:]))
	if err != nil {
		return Machine{}, err
	}
	return Machine{Arch: runtime.GOARCH, Kernel: kernel, Capabilities: capabilities}, nil
}
