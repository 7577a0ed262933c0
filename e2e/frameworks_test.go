// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// frameworks has TestFrameworks run, for which hundreds of megabytes are installed
// and Horovod is compiled, once a machine, in some minutes:
//
//	go test ./e2e -run Frameworks -frameworks -timeout 40m
var frameworks = flag.Bool("frameworks", false, "install Horovod, DeepSpeed, MLX and Intel MPI, and train with them")

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
		part("horovod", func(t *testing.T, s *server) {
			bin := overDebian(t, []string{"HOROVOD_WITH_PYTORCH=1", "HOROVOD_WITH_GLOO=1", "HOROVOD_WITHOUT_MPI=1", "HOROVOD_WITHOUT_TENSORFLOW=1", "HOROVOD_WITHOUT_MXNET=1"}, "horovod==0.28.1")
			s.mapped(t, "diwan.dev/examples/horovod", "--path", bin, "--workdir", abs(t, root+"/examples/training"))
			s.staysElastic(t)
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

var goesOn = regexp.MustCompile(`rank 0 of (\d) goes on at epoch (\d+), step \d+, time=([\d.]+)`)

// staysElastic makes the Horovod example lose a worker and get more. It continues from the last commit each
// time.
func (s *server) staysElastic(t *testing.T) {
	const launcher = "horovod-digits-launcher-*/mpi-launcher"
	s.apply(t, strings.Replace(read(t, root+"/examples/training/horovod-elastic.yaml"), "- --pause=0.1", "- --pause=0.1\n                - --epochs=150", 1))
	s.prints(t, launcher, `epoch=3 workers=2`)
	killed := time.Now()
	s.kubectl(t, "delete", "pod", "horovod-digits-worker-1", "--force", "--grace-period=0")
	s.prints(t, launcher, `rank 0 of 1 goes on`)
	s.prints(t, launcher, `(?s)rank 0 of 1 goes on.*rank 0 of 2 goes on`)
	scaled := time.Now()
	s.kubectl(t, "patch", "mpijobs.v2beta1.kubeflow.org/horovod-digits", "--type=merge", "-p", `{"spec":{"mpiReplicaSpecs":{"Worker":{"replicas":3}}}}`)
	s.prints(t, launcher, `rank 0 of 3 goes on`)
	s.kubectl(t, "wait", "--for=condition=Succeeded", "--timeout=180s", "mpijob/horovod-digits")
	log := s.printed(launcher)
	if got := accuracy(t, log); got < 0.93 {
		t.Errorf("the accuracy is %v:\n%s", got, log)
	}
	epoch := 0
	for _, found := range goesOn.FindAllStringSubmatch(log, -1) {
		at, _ := strconv.Atoi(found[2])
		seconds, _ := strconv.ParseFloat(found[3], 64)
		when := time.Unix(0, int64(seconds*1e9))
		t.Logf("%s workers at epoch %d: %.1f s after the kill, %.1f s after scaling", found[1], at, when.Sub(killed).Seconds(), when.Sub(scaled).Seconds())
		if at < epoch {
			t.Errorf("it went back from epoch %d to %d", epoch, at)
		}
		epoch = at
	}
}
