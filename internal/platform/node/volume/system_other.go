// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package volume

import "io/fs"

// canTmpfs: this system has no file systems in memory for us.
func canTmpfs() bool { return false }

func mountTmpfs(string, int64) error { return nil }

func unmountBelow(string) error { return nil }

// blocks is the size of a file.
func blocks(info fs.FileInfo) int64 { return info.Size() }
