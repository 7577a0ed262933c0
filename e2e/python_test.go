// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"diwan.dev/diwan/bench/search/peer"
)

// podMark is what the Kubeflow SDKs take for the inside of a Pod.
const podMark = "/var/run/secrets/kubernetes.io"

// TestKatibSDK calls every method of the unmodified kubeflow-katib SDK.
func TestKatibSDK(t *testing.T) {
	t.Parallel()
	python := sdks(t)
	s := newServer(t)
	s.mapped(t, "docker.io/pytorch/pytorch", "--path", filepath.Dir(python))
	s.python(t, python, "katib_client.py")
	if misleading() {
		t.Errorf("%s is on the host", podMark)
	}
}

// TestKubeflowSDK calls every method of the unmodified kubeflow SDK's TrainerClient and OptimizerClient.
func TestKubeflowSDK(t *testing.T) {
	t.Parallel()
	python := sdks(t)
	s := newServer(t)
	s.mapped(t, "nvcr.io/nvidia/jax", "--path", filepath.Dir(python))
	s.python(t, python, "trainer_client.py")
	s.python(t, python, "optimizer_client.py")
}

// misleading reports whether the SDKs take this machine for the inside of a Pod, though it is none.
func misleading() bool {
	_, err := os.Stat(podMark)
	_, account := os.Stat(podMark + "/serviceaccount/namespace")
	return err == nil && account != nil
}

// sdks returns a Python that has the Kubeflow SDKs.
func sdks(t *testing.T) (python string) {
	t.Helper()
	missing := t.Skipf
	if os.Getenv("CI") != "" {
		missing = t.Fatalf
	}
	if misleading() {
		missing("%s is there, so that the SDKs take this machine for the inside of a Pod: remove it", podMark)
	}
	return environment(t, "requirements.txt")
}

// environment returns a Python that has what a file in testdata/python lists.
// It is made once and kept in the user's cache.
func environment(t *testing.T, requirements string) (python string) {
	t.Helper()
	return environmentOf(t, "sdks", filepath.Join("testdata", "python", requirements))
}

// environmentOf is environment for any file, installed with options of pip; those
// of one directory in the cache have different names.
func environmentOf(t *testing.T, directory, requirements string, options ...string) (python string) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	made, err := peer.Make(ctx, filepath.Join(cache, "diwan", "e2e", directory), requirements, options...)
	switch {
	case err == nil:
		return made.Python
	case os.Getenv("CI") != "":
		t.Fatal(err)
	}
	t.Skipf("what %s lists cannot be installed; this needs Python 3.10 with venv, and a package index: %v", requirements, err)
	return ""
}

// python runs one of the programs in testdata/python as a user of the server
// does, with more variables.
func (s *server) python(t *testing.T, python, program string, env ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, abs(t, filepath.Join("testdata", "python", program)))
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(s.home, "kubeconfig"), "KATIB_DB_MANAGER="+s.dbManager(t), "PYTHONDONTWRITEBYTECODE=1")
	cmd.Env = append(cmd.Env, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

// mapped says what an image stands for.
func (s *server) mapped(t *testing.T, image string, flags ...string) {
	t.Helper()
	if _, stderr, code := s.diwan(append([]string{"images", "map", image}, flags...)...); code != 0 {
		t.Fatalf("diwan images map %s: exit code %d\n%s", image, code, stderr)
	}
}

// dbManager is the address of the DB manager as the host reaches it.
func (s *server) dbManager(t *testing.T) string {
	t.Helper()
	address := strings.TrimSpace(read(t, filepath.Join(s.home, "db-manager-address")))
	if address == "" {
		t.Fatal("the DB manager has no address")
	}
	return address
}
