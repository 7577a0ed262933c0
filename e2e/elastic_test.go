// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var batchJobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

// testElastic deletes a worker of an elastic training at once; another takes its place, and the training comes to its
// end with each sample used once in each epoch. It is slow until that has happened.
func testElastic(t *testing.T, s *server) {
	const digits = "digits-*/worker"
	directory, slow := abs(t, root+"/examples/elastic"), filepath.Join(t.TempDir(), "slow")
	manifest := strings.NewReplacer("train.py", filepath.Join(directory, "train.py"), "--pause=0.2", "--pause=1, --pause-while="+slow).Replace(read(t, filepath.Join(directory, "job.yaml")))
	file := filepath.Join(t.TempDir(), "job.yaml")
	for path, text := range map[string]string{file: manifest, slow: ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	applied := make(chan string, 1)
	go func() {
		defer close(applied) // also when the command does not end
		stdout, stderr, code := s.diwan("run", file)
		applied <- fmt.Sprintf("exit code %d\n%s%s", code, stdout, stderr)
	}()
	defer func() { t.Logf("diwan run: %s", <-applied) }()

	s.prints(t, digits, "rank=2 of=3")
	if stdout, stderr, code := s.diwan("kubectl", "delete", "pod", "-l", "batch.kubernetes.io/job-completion-index=1,batch.kubernetes.io/job-name=digits", "--force", "--grace-period=0"); code != 0 {
		t.Fatalf("cannot delete the worker: exit code %d\n%s%s", code, stdout, stderr)
	}
	s.prints(t, digits, "rank=1 of=2")
	s.prints(t, digits, "view=([4-9]|[1-9][0-9]) rank=[0-9] of=3")
	// Most die at once: there is no quorum, but it is known that they are dead.
	if stdout, stderr, code := s.diwan("kubectl", "delete", "pod", "-l", "batch.kubernetes.io/job-completion-index in (0,2),batch.kubernetes.io/job-name=digits", "--force", "--grace-period=0"); code != 0 {
		t.Fatalf("cannot delete the workers: exit code %d\n%s%s", code, stdout, stderr)
	}
	s.prints(t, digits, "view=([5-9]|[1-9][0-9]) rank=0 of=1 members=digits-1 ")
	if err := os.Remove(slow); err != nil {
		t.Fatal(err)
	}
	eventually(t, 3*time.Minute, func() error {
		job, err := s.client().Resource(batchJobs).Namespace("default").Get(t.Context(), "digits", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if _, _, ok := condition(job, "Complete"); !ok {
			return fmt.Errorf("the job is not complete: %v", job.Object["status"])
		}
		return nil
	})
	epochs := regexp.MustCompile(`epoch=\d+ .*`).FindAllString(s.printed(digits), -1)
	if len(epochs) < 4 {
		t.Errorf("%d epochs were reported, want at least 4", len(epochs))
	}
	for _, epoch := range epochs {
		if !strings.HasSuffix(strings.TrimSpace(epoch), "samples=1797 once=true") {
			t.Errorf("%s: want each of 1797 samples once", epoch)
		}
	}
}

// printed is what containers have printed, by a pattern POD/CONTAINER.
func (s *server) printed(containers string) string {
	paths, _ := filepath.Glob(filepath.Join(s.home, "logs", "default", containers, "*.log"))
	var all strings.Builder
	for _, path := range paths {
		text, _ := os.ReadFile(path)
		all.Write(text)
	}
	return all.String()
}

// prints waits until containers have printed what a pattern matches.
func (s *server) prints(t *testing.T, containers, pattern string) {
	t.Helper()
	wanted := regexp.MustCompile(pattern)
	eventually(t, 2*time.Minute, func() error {
		if text := s.printed(containers); !wanted.MatchString(text) {
			return fmt.Errorf("%s have not printed %q:\n%s", containers, pattern, text)
		}
		return nil
	})
}
