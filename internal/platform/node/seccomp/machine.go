// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"

	"github.com/moby/profiles/seccomp"
)

// Machine is what a profile's rules may depend on.
type Machine struct {
	Arch         string   // Go's name: amd64 or arm64
	Kernel       Kernel   // that runs
	Capabilities []string // the container's bounding set: CAP_CHOWN, …
}

// Kernel is a version of Linux. What follows the minor number changes no syscall.
type Kernel struct{ Major, Minor uint64 }

// parseKernel reads a release, such as 6.18.44-generic.
func parseKernel(release string) (Kernel, error) {
	var k Kernel
	if _, err := fmt.Sscanf(release, "%d.%d", &k.Major, &k.Minor); err != nil {
		return Kernel{}, fmt.Errorf("cannot read the version of the kernel from %q: %w", release, err)
	}
	return k, nil
}

// least reports whether k is this version or a newer one.
func (k Kernel) least(v Kernel) bool {
	return k.Major > v.Major || k.Major == v.Major && k.Minor >= v.Minor
}

// kernelOf translates the name that profiles use: in 6.18 they call 6 the kernel and 18
// its major revision.
func kernelOf(v seccomp.KernelVersion) Kernel { return Kernel{Major: v.Kernel, Minor: v.Major} }
