// SPDX-License-Identifier: Apache-2.0

package database

import (
	"os"
	"syscall"
)

// nobody is the user without rights that servers run as where the test is root,
// which they refuse to run as.
const nobody = 65534

func unprivileged() *syscall.SysProcAttr {
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody, NoSetGroups: true}}
}

// giveAway gives a directory to the user that servers run as.
func giveAway(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(dir, nobody, nobody)
}
