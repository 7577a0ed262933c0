// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"diwan.dev/diwan/observation/sqlite"
)

// smallDisk mounts a file system of so many megabytes.
func smallDisk(t *testing.T, megabytes int) string {
	t.Helper()
	dir := t.TempDir()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("a small file system can be mounted by root alone, on Linux")
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", megabytes)); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("no small file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, size := range []int{1 << 20, 1 << 12, 1} {
		for block := make([]byte, size); err == nil; _, err = file.Write(block) {
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		err = nil
	}
}

// TestFullDisk fills the disk while an experiment runs. The user is told, and
// when there is space again, everything continues, after a restart if needed.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, 400)
	s := newServerOn(t, filepath.Join(dir, "home"))
	const trials = 30
	x := shape{name: "full", trials: trials, parallel: 4, failed: 1, command: "for i in 1 2 3 4 5; do echo loss=${trialParameters.x}; sleep 0.1; done"}
	if err := x.create(s); err != nil {
		t.Fatal(err)
	}
	s.trialsSucceed(x.name, 3)
	ballast := filepath.Join(dir, "ballast")
	fill(t, ballast)
	died := s.suffers(t)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if died {
		s.start()
	}
	s.ended("default", x.name, 3*time.Minute)
	s.stop()
	store, err := sqlite.Open(t.Context(), filepath.Join(s.home, "observations.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s.start()
	s.undisturbed(store, x.name, trials, 5)
}

// trialsSucceed waits for some trials.
func (s *server) trialsSucceed(experiment string, n int) {
	s.t.Helper()
	eventually(s.t, time.Minute, func() error {
		done := 0
		for _, trial := range s.trialsOf(experiment) {
			if _, _, ok := condition(&trial, "Succeeded"); ok {
				done++
			}
		}
		if done < n {
			return fmt.Errorf("%d trials succeeded, want %d", done, n)
		}
		return nil
	})
}

// suffers watches a server whose disk is full: either its node says so, or it
// ends and says so. It reports whether it ended.
func (s *server) suffers(t *testing.T) (died bool) {
	t.Helper()
	kube, err := kubernetes.NewForConfig(s.config())
	if err != nil {
		t.Fatal(err)
	}
	told := ""
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
		if strings.Contains(string(stat), ") Z ") {
			_ = s.cmd.Wait()
			if !strings.Contains(s.log.String(), "disk") && !strings.Contains(s.log.String(), "space") {
				t.Errorf("diwan up ended without a word about the disk:\n%s", s.log)
			}
			return true
		}
		nodes, err := kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			continue
		}
		for _, c := range nodes.Items[0].Status.Conditions {
			if c.Type == corev1.NodeDiskPressure && c.Status == corev1.ConditionTrue && told == "" {
				told, end = c.Message, time.Now().Add(5*time.Second) // in which more may come of it
			}
		}
	}
	t.Logf("the node says: %s", told)
	if told == "" {
		t.Error("nobody says that the disk is full")
	}
	return false
}
