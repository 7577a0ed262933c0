// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// mountpoints remembers, one path a line, the empty directories and files that
// were made on the host so that something could be mounted there.
type mountpoints struct {
	mu   sync.Mutex
	file string
}

func (p *mountpoints) remember(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	file, err := os.OpenFile(p.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot remember a mount point: %w", err)
	}
	defer file.Close()
	if _, err := file.WriteString(strings.Join(paths, "\n") + "\n"); err != nil {
		return fmt.Errorf("cannot remember a mount point: %w", err)
	}
	return nil
}

// clear removes what is remembered, unless it is in use: the kernel would take
// a mount away with its mount point. What is not empty stays, too.
func (p *mountpoints) clear() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, err := os.ReadFile(p.file)
	if err != nil {
		return nil // nothing was made
	}
	paths := strings.Fields(strings.ReplaceAll(string(text), " ", "\x00"))
	busy := mounted()
	for _, path := range slices.Backward(paths) {
		path = strings.ReplaceAll(path, "\x00", " ")
		real, err := filepath.EvalSymlinks(path)
		if err != nil || busy[real] {
			continue
		}
		if info, err := os.Lstat(real); err == nil && (info.IsDir() || info.Size() == 0) {
			os.Remove(real)
		}
	}
	return os.Remove(p.file)
}
