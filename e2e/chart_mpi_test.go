// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diwan.dev/diwan/internal/platform/node/image"
)

// testMPI runs the MPI operator's example where Pods have nothing of Diwan's: the
// ssh and sshd of the image bring the launcher to its workers.
func (f *foreign) testMPI(t *testing.T) {
	needs(t, "mpirun", "mpi")
	needs(t, "/usr/sbin/sshd", "mpi")
	f.cluster.Map(image.Entry{Image: "mpioperator/mpi-pi:openssh", Files: imageWithOpenSSH(t)})
	f.namespace("mpi")
	manifest := filepath.Join(t.TempDir(), "pi.yaml")
	if err := os.WriteFile(manifest, []byte(piByOpenSSH(t)), 0o644); err != nil {
		t.Fatal(err)
	}
	f.shell(t, "kubectl apply -n mpi -f "+manifest+"; kubectl wait -n mpi --for=condition=Succeeded --timeout=120s mpijob/pi-openssh")
	said := func(pods string) string {
		var all strings.Builder
		paths, _ := filepath.Glob(filepath.Join(f.cluster.ContainerLogs(), "mpi", pods, "*", "*.log"))
		for _, path := range paths {
			all.WriteString(read(t, path))
		}
		return all.String()
	}
	isPi(t, said("pi-openssh-launcher-*"), "pi-openssh-worker-0", "pi-openssh-worker-1")
	if log := said("pi-openssh-worker-*"); strings.Count(log, "Accepted publickey for mpiuser") != 2 {
		t.Errorf("the workers' sshd said:\n%s", log)
	}
}
