// SPDX-License-Identifier: Apache-2.0

package elastic

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// python is that which has PyTorch from Debian's packages.
const python = "/usr/bin/python3"

// needsPyTorch skips a test where there is none.
func needsPyTorch(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/usr/bin/torchrun"); err == nil {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal("PyTorch is not installed: run `make torch`")
	}
	t.Skip("PyTorch is not installed: run `make torch`")
}

// TestPyTorch has a worker killed, one frozen and one added to a training whose gradients go by PyTorch's process
// groups.
func TestPyTorch(t *testing.T) {
	t.Parallel()
	needsPyTorch(t)
	const samples, epochs = 1437, 2
	calm := newJob(t, samples, python, "train_pytorch.py", "--epochs=2")
	calm.start("w0")
	calm.finish(2 * time.Minute)

	slow := newSlow(t)
	wild := newJob(t, samples, python, "train_pytorch.py", "--epochs=2", "--pause=2", "--pause-while="+slow)
	wild.start("w0")
	wild.awaitSize(1)
	killed, frozen := wild.start("w1"), wild.start("w2")
	wild.awaitSize(3)
	killed.Process.Kill()
	killed.Wait()
	delete(wild.workers, "w1")
	wild.awaitSize(2)
	syscall.Kill(-frozen.Process.Pid, syscall.SIGSTOP)
	wild.awaitSize(1)
	wild.start("w3")
	wild.awaitSize(2)
	syscall.Kill(-frozen.Process.Pid, syscall.SIGCONT)
	wild.awaitSize(3)
	if err := os.Remove(slow); err != nil {
		t.Fatal(err)
	}
	wild.finish(2 * time.Minute)
	sameLosses(t, calm.epochs(), wild.epochs(), epochs)
}

// TestTorchrun has a program for torchrun run with views as its rendezvous: it begins again at its checkpoint when a
// worker is killed or added.
func TestTorchrun(t *testing.T) {
	t.Parallel()
	needsPyTorch(t)
	checkpoint, enough := filepath.Join(t.TempDir(), "checkpoint"), filepath.Join(t.TempDir(), "enough")
	job := newJob(t, 1437, python, "-m", "diwan.elastic.torchrun", "--nnodes=1:8", "--nproc_per_node=1", "--max_restarts=100",
		"../training/pytorch_elastic.py", "--epochs=20", "--pause=20", "--pause-until="+enough, "--checkpoint="+checkpoint)
	job.start("w0")
	job.awaitSaid(`epoch 1 workers=1`)
	killed := job.start("w1")
	job.awaitSaid(`rank 1 of 2 begins at epoch ([2-9]|\d\d)`)
	killed.Process.Kill()
	killed.Wait()
	delete(job.workers, "w1")
	job.awaitSaid(`of 2 begins(.|\n)*rank 0 of 1 begins at epoch ([2-9]|\d\d)`)
	if err := os.WriteFile(enough, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	job.finish(2 * time.Minute)
	said := job.awaitSaid(`rank 0 of 1 accuracy=([\d.]+)`)
	if accuracy, _ := strconv.ParseFloat(said[1], 64); accuracy < 0.95 {
		t.Errorf("it came to an accuracy of %v, want 0.95", accuracy)
	}
}

// awaitSaid waits until some worker has said what a pattern matches.
func (j *job) awaitSaid(pattern string) []string {
	j.t.Helper()
	wanted := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		logs := j.logs()
		for _, text := range logs {
			if match := wanted.FindStringSubmatch(text); match != nil {
				return match
			}
		}
		if time.Now().After(deadline) {
			j.t.Fatalf("no worker says %q: %q", pattern, logs)
		}
	}
}
