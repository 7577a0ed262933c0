// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/node/container"
)

// secretsDir is where Pods find their service accounts. Kubernetes clients take
// a machine that has podMark for the inside of a Pod, so mount points there are
// not made on the host, where programs beside the Pods would be misled.
const (
	secretsDir = "/var/run/secrets"
	podMark    = secretsDir + "/kubernetes.io"
)

// coverSecrets gives the calling thread's mount namespace a secretsDir of its
// own, with what the host's holds, where mounts need mount points there that
// the host does not have. It returns the mount that it made, if any.
func (r *Runtime) coverSecrets(mounts []container.Mount) ([]container.Mount, error) {
	below := func(m container.Mount) bool { return strings.HasPrefix(m.Target, podMark) }
	if _, err := os.Stat(podMark); !errors.Is(err, fs.ErrNotExist) || !slices.ContainsFunc(mounts, below) {
		return nil, nil
	}
	cover := container.Mount{Source: r.cfg.Dir, Target: secretsDir}
	if err := r.points.ensure(cover, nil); err != nil {
		return nil, err
	}
	host, err := os.Open(secretsDir)
	if err != nil {
		return nil, err
	}
	defer host.Close()
	entries, err := host.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	if err := unix.Mount("tmpfs", secretsDir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0755,size=64k"); err != nil {
		return nil, fmt.Errorf("cover %s: %w", secretsDir, err)
	}
	covered := []container.Mount{cover}
	for _, e := range entries {
		m := container.Mount{Source: fmt.Sprintf("/proc/thread-self/fd/%d/%s", host.Fd(), e.Name()), Target: filepath.Join(secretsDir, e.Name())}
		if err := errors.Join(r.points.ensure(m, covered), bind(m)); err != nil {
			return nil, err
		}
	}
	return covered, nil
}
