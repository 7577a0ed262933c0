// SPDX-License-Identifier: Apache-2.0

// Package elastic holds a training whose workers come and go. It has no Go code of its own: its test runs the workers
// below their agents, and kills some.
package elastic

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"diwan.dev/diwan/internal/testing/freeport"
	"diwan.dev/diwan/internal/training/elasticcmd"
)

// TestMain lets the test binary be the agent.
func TestMain(m *testing.M) {
	if os.Getenv("DIWAN_TEST_ELASTIC") != "" {
		os.Exit(elasticcmd.Main())
	}
	os.Exit(m.Run())
}

// job is some workers of one training, each a process below an agent.
type job struct {
	t       *testing.T
	dir     string
	seeds   []string // where agents gossip
	program []string
	samples string // in each epoch
	workers map[string]*exec.Cmd
	runs    int
}

func newJob(t *testing.T, samples int, program ...string) *job {
	t.Helper()
	if _, err := exec.LookPath(program[0]); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return &job{t: t, dir: t.TempDir(), program: program, samples: strconv.Itoa(samples), workers: map[string]*exec.Cmd{}}
}

// start runs a worker. w0 founds; those that started before are the seeds.
func (j *job) start(name string) *exec.Cmd {
	j.t.Helper()
	gossip, err := freeport.Address()
	if err != nil {
		j.t.Fatal(err)
	}
	args := []string{"agent", "--job", "digits", "--name", name, "--founder", "w0", "--gossip", gossip}
	if len(j.seeds) > 0 {
		args = append(args, "--seed", strings.Join(j.seeds, ","))
	}
	j.seeds = append(j.seeds, gossip)
	args = append(args, "--")
	command := exec.Command(os.Args[0], append(args, j.program...)...)
	command.Env = append(os.Environ(), "DIWAN_TEST_ELASTIC=1", "DIWAN_ELASTIC_HOST=127.0.0.1", "PYTHONUNBUFFERED=1",
		"PYTHONPATH=../../python", "OMP_NUM_THREADS=1", "PYTHONDONTWRITEBYTECODE=1",
		"PET_REDIRECTS=9:1", "PET_TEE=9:1") // what torchrun means by default, which that of Debian 12 does not know
	j.runs++
	log, err := os.Create(filepath.Join(j.dir, fmt.Sprintf("%s.%02d.log", name, j.runs)))
	if err != nil {
		j.t.Fatal(err)
	}
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		j.t.Fatal(err)
	}
	j.t.Cleanup(func() { // killing the agent ends the worker
		syscall.Kill(-command.Process.Pid, syscall.SIGCONT)
		syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		command.Wait()
		if j.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			j.t.Logf("%s:\n%s", filepath.Base(log.Name()), text)
		}
	})
	j.workers[name] = command
	return command
}

// finish waits until all that run end well.
func (j *job) finish(limit time.Duration) {
	j.t.Helper()
	timer := time.AfterFunc(limit, func() {
		for _, w := range j.workers {
			w.Process.Kill()
		}
	})
	defer timer.Stop()
	for name, w := range j.workers {
		if err := w.Wait(); err != nil {
			j.t.Fatalf("worker %s: %v (all must end within %v)", name, err, limit)
		}
	}
}

var (
	epochLine = regexp.MustCompile(`(?m)^epoch=(\d+) loss=([0-9.]+) samples=(\d+) once=(\w+)`)
	viewLine  = regexp.MustCompile(`(?m)^view=(\d+) rank=(\d+) of=(\d+) `)
)

// epochs reads the loss of each epoch from the logs, and holds the epochs to having had each sample once.
func (j *job) epochs() map[int]float64 {
	j.t.Helper()
	losses := map[int]float64{}
	for _, text := range j.logs() {
		for _, match := range epochLine.FindAllStringSubmatch(text, -1) {
			if match[3] != j.samples || match[4] != "true" {
				j.t.Errorf("%s: want each of %s samples once", match[0], j.samples)
			}
			epoch, _ := strconv.Atoi(match[1])
			loss, _ := strconv.ParseFloat(match[2], 64)
			if other, ok := losses[epoch]; ok && math.Abs(other-loss) > 1e-6 {
				j.t.Errorf("epoch %d has the losses %v and %v", epoch, other, loss)
			}
			losses[epoch] = loss
		}
	}
	return losses
}

func (j *job) logs() []string {
	paths, _ := filepath.Glob(filepath.Join(j.dir, "*.log"))
	var texts []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			j.t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

// latest is the number and the size of the newest view that some worker has trained in.
func (j *job) latest() (number, size int) {
	for _, text := range j.logs() {
		for _, match := range viewLine.FindAllStringSubmatch(text, -1) {
			if n, _ := strconv.Atoi(match[1]); n > number {
				number = n
				size, _ = strconv.Atoi(match[3])
			}
		}
	}
	return number, size
}

// awaitSize waits until a view of the given size is trained in.
func (j *job) awaitSize(want int) {
	j.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		number, size := j.latest()
		if size == want {
			return
		}
		if time.Now().After(deadline) {
			j.t.Fatalf("the view %d of %d members is not followed by one of %d", number, size, want)
		}
	}
}

// soak has TestWorkersComeAndGo go on for about a minute:
//
//	go test ./examples/elastic -run TestWorkersComeAndGo -soak
var soak = flag.Bool("soak", false, "disturb a training for a minute")

// TestWorkersComeAndGo kills a worker and starts another, again and again, freezes one for a while, and holds the training
// to what it would have been without: each sample once in each epoch, and the same loss.
func TestWorkersComeAndGo(t *testing.T) {
	t.Parallel()
	const epochs = 4
	rounds := 3
	if *soak {
		rounds = 25
	}
	calm := newJob(t, 1797, "python3", "train.py", "--seed=1", fmt.Sprintf("--epochs=%d", epochs))
	calm.start("w0")
	calm.finish(2 * time.Minute)

	slow := newSlow(t)
	wild := newJob(t, 1797, "python3", "train.py", "--seed=1", fmt.Sprintf("--epochs=%d", epochs), "--pause=0.8", "--pause-while="+slow)
	random := rand.New(rand.NewPCG(1, 1))
	for i := range 3 {
		wild.start(fmt.Sprint("w", i))
	}
	wild.awaitSize(3)
	for i := range rounds {
		wild.start(fmt.Sprint("w", 3+i))
		wild.awaitSize(4)
		running := slices.Sorted(maps.Keys(wild.workers))
		victim := running[random.IntN(len(running))]
		wild.workers[victim].Process.Kill()
		wild.workers[victim].Wait()
		delete(wild.workers, victim)
		wild.awaitSize(3)
	}
	stopped := wild.start("last") // and one that is frozen and comes back
	wild.awaitSize(4)
	syscall.Kill(-stopped.Process.Pid, syscall.SIGSTOP)
	wild.awaitSize(3)
	syscall.Kill(-stopped.Process.Pid, syscall.SIGCONT)
	wild.awaitSize(4)
	if err := os.Remove(slow); err != nil {
		t.Fatal(err)
	}
	wild.finish(3 * time.Minute)

	got := wild.epochs()
	sameLosses(t, calm.epochs(), got, epochs)
	number, _ := wild.latest()
	t.Logf("%d kills, %d views, loss %v", rounds, number, got[epochs])
}

// sameLosses holds a disturbed training to the losses of an undisturbed one.
func sameLosses(t *testing.T, want, got map[int]float64, epochs int) {
	t.Helper()
	if len(want) != epochs || len(got) != epochs {
		t.Fatalf("epochs reported: %v and %v, want %d of each", want, got, epochs)
	}
	for epoch := range want {
		if math.Abs(want[epoch]-got[epoch]) > 1e-4 {
			t.Errorf("the loss of epoch %d is %v, without disturbance %v", epoch, got[epoch], want[epoch])
		}
	}
}

// newSlow makes a file that keeps programs slow while it is there, so that they do not end before they are disturbed.
func newSlow(t *testing.T) string {
	t.Helper()
	slow := filepath.Join(t.TempDir(), "slow")
	if err := os.WriteFile(slow, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return slow
}
