// SPDX-License-Identifier: Apache-2.0

package node

import (
	"io/fs"
	"syscall"
)

// diskSize is the space that a file takes, without its holes.
func diskSize(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}
