// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// frameworks has TestFrameworks run, for which hundreds of megabytes are installed,
// in some minutes:
//
//	go test ./e2e -run Frameworks -frameworks -timeout 40m
var frameworks = flag.Bool("frameworks", false, "install DeepSpeed, MLX and Intel MPI, and train with them")

// TestFrameworks trains with the frameworks that MPI launches.
func TestFrameworks(t *testing.T) {
	t.Parallel()
	if !*frameworks {
		t.Skip("it installs and compiles for minutes: run it with -frameworks")
	}
	if os.Geteuid() != 0 {
		t.Skip("the launchers need addresses and users of their own: run as root")
	}
	needs(t, "mpirun", "mpi")
	needs(t, "/usr/bin/torchrun", "torch")
	s := newServer(t, "--cpus", "16")
	s.parts(t, func(part part) {
		part("intel", func(t *testing.T, s *server) {
			s.runsHydra(t, "intel", "Intel")
			s.apply(t, read(t, "testdata/mpi/intel-v1.yaml"))
			s.kubectl(t, "wait", "--for=condition=Succeeded", "--timeout=120s", "mpijob/intel-v1")
			isPi(t, s.kubectl(t, "logs", "intel-v1-launcher"), "intel-v1-worker-0", "intel-v1-worker-1")
		})
		part("deepspeed", func(t *testing.T, s *server) {
			bin := overDebian(t, []string{"DS_BUILD_OPS=0"}, "deepspeed==0.14.5", "mpi4py")
			s.trainsFunction(t, "deepspeed-distributed", bin, "TORCH_EXTENSIONS_DIR=/home/mpiuser/extensions")
		})
		part("mlx", func(t *testing.T, s *server) {
			bin := overDebian(t, nil, "mlx[cpu]==0.32.4")
			s.trainsFunction(t, "mlx-distributed", bin, "MLX_MPI_LIBNAME=libmpi.so.40") // Debian's name without its headers
		})
	})
}

// overDebian installs packages over Debian's python3 and its PyTorch, where every
// user of the machine can read them, and returns their programs' directory.
func overDebian(t *testing.T, env []string, packages ...string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "diwan-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	install := append([]string{filepath.Join(dir, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", "--no-build-isolation"}, packages...)
	for _, words := range [][]string{{"/usr/bin/python3", "-m", "venv", "--system-site-packages", dir}, install} {
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		cmd.Env = append(os.Environ(), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", words, err, out)
		}
	}
	return filepath.Join(dir, "bin")
}

// trainsFunction trains a function by the SDK on a runtime of MPI, whose user has
// a home, as in its image.
func (s *server) trainsFunction(t *testing.T, runtime, bin, variable string) {
	t.Helper()
	home := filepath.Join(filepath.Dir(bin), "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, 1000, 1000); err != nil {
		t.Fatal(err)
	}
	image := "ghcr.io/kubeflow/trainer/" + strings.TrimSuffix(runtime, "-distributed") + "-runtime"
	s.mapped(t, image, "--path", bin, "--file", "/home/mpiuser="+home, "--env", "HOME=/home/mpiuser", "--env", variable)
	sdk := sdks(t)
	cmd := exec.CommandContext(t.Context(), sdk, abs(t, "testdata/python/mpi_client.py"), runtime, abs(t, root+"/examples/training"))
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(s.home, "kubeconfig"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", runtime, err, out)
	}
	t.Logf("%s", out)
}
