// SPDX-License-Identifier: Apache-2.0

// Package program builds the programs of this module that tests start.
//
// Linking the Kubernetes servers takes half a minute. Each program is therefore
// linked once for all test binaries of a checkout, into bin/test, and again only when
// its sources have changed: a test that needs no more than a running cluster starts
// the program in place of linking it.
package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// flags leave debug information out, which links faster, and set the version that API
// servers tell their clients.
const flags = "-ldflags=-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2" +
	" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"

// Build builds the program in a directory of the module, such as "cmd/diwan", and
// returns its path.
func Build(dir string) (string, error) {
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("cannot find the module: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(mod)))
	bin := filepath.Join(root, "bin", "test")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(bin, filepath.Base(dir))
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return "", fmt.Errorf("cannot lock %s: %w", lock.Name(), err)
	}
	// go test, which does not know what the program is made of, keeps no result of a
	// test that read a file so new.
	if err := os.Chtimes(lock.Name(), time.Time{}, time.Now().AddDate(1, 0, 0)); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-buildvcs=false", flags, "-o", path, "./"+dir)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build %s: %w\n%s", dir, err, out)
	}
	return path, nil
}
