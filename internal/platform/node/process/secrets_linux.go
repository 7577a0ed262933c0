// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/container"
)

// secretsDir is where Pods find their service accounts. Kubernetes clients take
// a machine that has podMark for the inside of a Pod, so mount points there are
// not made on the host, where programs beside the Pods would be misled.
const (
	secretsDir = "/var/run/secrets"
	podMark    = secretsDir + "/kubernetes.io"
)

// coverSecrets covers secretsDir where mounts need mount points there that the
// host does not have.
func (r *Runtime) coverSecrets(mounts []container.Mount, points *mountpoints) ([]container.Mount, error) {
	below := func(m container.Mount) bool { return strings.HasPrefix(m.Target, podMark) }
	if _, err := os.Stat(podMark); !errors.Is(err, fs.ErrNotExist) || !slices.ContainsFunc(mounts, below) {
		return nil, nil
	}
	err := points.ensure(container.Mount{Source: r.cfg.Dir, Target: secretsDir}, nil)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		return nil, nil // place covers more
	}
	if err != nil {
		return nil, err
	}
	cover, err := r.cover(secretsDir)
	return []container.Mount{cover}, err
}
