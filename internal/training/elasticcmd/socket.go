// SPDX-License-Identifier: Apache-2.0

package elasticcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Agents that have a worker below them listen in a directory of their own, which only its owner can enter.
const (
	socketDir  = "diwan-elastic-*"
	socketName = "agent"
)

// newSocketDir creates such a directory, and removes those of killed agents.
func newSocketDir() (string, error) {
	sweep()
	dir, err := os.MkdirTemp("", socketDir)
	if err != nil {
		return "", fmt.Errorf("cannot create a directory for the socket: %w", err)
	}
	return dir, nil
}

// sweep removes the directories where nobody listens. A young one may be of an agent that is about to; one of another
// user stays.
func sweep() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), socketDir))
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		conn, err := net.Dial("unix", filepath.Join(dir, socketName))
		switch {
		case err == nil:
			conn.Close()
		case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
			os.RemoveAll(dir)
		}
	}
}
