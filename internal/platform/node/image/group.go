// SPDX-License-Identifier: Apache-2.0

package image

import (
	"os/exec"
	"syscall"
)

// endWithGroup makes the end of the command's context end its children too.
func endWithGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
