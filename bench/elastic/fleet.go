// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"diwan.dev/diwan/internal/testing/freeport"
)

// fleet is the workers of one job, each a process group of its own.
type fleet struct {
	bench      *bench
	name       string
	kind       string // how workers are started: ring, gloo, torchrun, …
	options    []string
	rendezvous string // of torchrun
	workers    map[string]*worker
	seeds      []string
	next       int

	mu       sync.Mutex
	progress []progress
	epochs   []map[string]string
}

type worker struct {
	command *exec.Cmd
	ended   chan error
}

// progress is the first time that the job came to a position, and with how many workers.
type progress struct {
	position, size int
	at             time.Time
}

func (b *bench) newFleet(name, kind string, options ...string) (*fleet, error) {
	rendezvous, err := freeport.Address()
	return &fleet{bench: b, name: name, kind: kind, options: options, rendezvous: rendezvous, workers: map[string]*worker{}}, err
}

// add starts a worker.
func (f *fleet) add() error {
	name := fmt.Sprint("w", f.next)
	f.next++
	args, err := f.command(name)
	if err != nil {
		return err
	}
	command := exec.Command(args[0], args[1:]...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Env = append(os.Environ(), "DIWAN_ELASTIC_HOST=127.0.0.1", "OMP_NUM_THREADS=1", "PYTHONUNBUFFERED=1",
		"GLOO_SOCKET_IFNAME=lo", "PYTHONPATH="+filepath.Join(f.bench.source, "python"),
		"PET_REDIRECTS=9:1", "PET_TEE=9:1") // what torchrun means by default, which PyTorch 1 does not know under Python 3.11
	log, err := os.Create(filepath.Join(f.bench.dir, f.name+"."+name+".log"))
	if err != nil {
		return err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	command.Stderr = log
	if err := command.Start(); err != nil {
		return err
	}
	w := &worker{command: command, ended: make(chan error, 1)}
	f.workers[name] = w
	go func() {
		f.read(io.TeeReader(out, log))
		w.ended <- command.Wait()
		log.Close()
	}()
	return nil
}

// command is how a worker is started.
func (f *fleet) command(name string) ([]string, error) {
	gossip, err := freeport.Address()
	if err != nil {
		return nil, err
	}
	script := append([]string{filepath.Join(f.bench.source, "bench", "elastic", "worker.py")}, f.options...)
	agent := []string{f.bench.agent, "agent", "--job", f.name, "--name", name, "--founder", "w0", "--gossip", gossip}
	if len(f.seeds) > 0 {
		agent = append(agent, "--seed", strings.Join(f.seeds, ","))
	}
	f.seeds = append(f.seeds, gossip)
	torchrun := []string{"--nnodes", "1:8", "--nproc_per_node", "1", "--max_restarts", "100", "--rdzv_id", f.name}
	switch f.kind {
	case "torchrun", "torchrun-hasty":
		rendezvous := []string{"--rdzv_backend", "c10d", "--rdzv_endpoint", f.rendezvous}
		if f.kind == "torchrun-hasty" {
			rendezvous = append(rendezvous, "--rdzv_conf", "last_call_timeout=1")
		}
		return slices.Concat([]string{f.bench.python, "-m", "torch.distributed.run"}, torchrun, rendezvous, script, []string{"--mode", "torchrun"}), nil
	case "torchrun-views":
		return slices.Concat(agent, []string{"--", f.bench.python, "-m", "diwan.elastic.torchrun"}, torchrun, script, []string{"--mode", "torchrun"}), nil
	default:
		return slices.Concat(agent, []string{"--", f.bench.python}, script, []string{"--mode", f.kind}), nil
	}
}

// read takes what a worker reports.
func (f *fleet) read(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		values := map[string]string{}
		for field := range strings.FieldsSeq(lines.Text()) {
			key, value, _ := strings.Cut(field, "=")
			values[key] = value
		}
		seconds, err := strconv.ParseFloat(values["time"], 64)
		if err != nil {
			continue
		}
		at := time.UnixMicro(int64(seconds * 1e6))
		size, _ := strconv.Atoi(values["size"])
		f.mu.Lock()
		if position, err := strconv.Atoi(values["step"]); err == nil && (len(f.progress) == 0 || position > f.progress[len(f.progress)-1].position) {
			f.progress = append(f.progress, progress{position, size, at})
		}
		if values["epoch"] != "" {
			f.epochs = append(f.epochs, values)
		}
		f.mu.Unlock()
	}
}

// kill ends a worker and all it has started, at once.
func (f *fleet) kill(name string) {
	w := f.workers[name]
	syscall.Kill(-w.command.Process.Pid, syscall.SIGKILL)
	<-w.ended
	delete(f.workers, name)
}

// killAll ends what is left.
func (f *fleet) killAll() {
	for name := range f.workers {
		f.kill(name)
	}
}

// wait waits until every worker has ended.
func (f *fleet) wait(limit time.Duration) error {
	timeout := time.After(limit)
	for name, w := range f.workers {
		select {
		case err := <-w.ended:
			w.ended <- err
			if err != nil {
				return fmt.Errorf("worker %s of %s: %w", name, f.name, err)
			}
		case <-timeout:
			return fmt.Errorf("worker %s of %s has not ended within %v", name, f.name, limit)
		case <-f.bench.ctx.Done():
			return f.bench.ctx.Err()
		}
	}
	clear(f.workers)
	return nil
}

// steps returns the progress so far.
func (f *fleet) steps() []progress {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.progress)
}

// awaitSize waits until a step has been done after a time, by so many workers.
func (f *fleet) awaitSize(size int, after time.Time, limit time.Duration) error {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		if steps := f.steps(); len(steps) > 0 && steps[len(steps)-1].at.After(after) && steps[len(steps)-1].size == size {
			return nil
		}
		if err := f.bench.sleep(20 * time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s has not done a step with %d workers within %v", f.name, size, limit)
}

// listens waits until the first of torchrun's agents serves the rendezvous.
func (f *fleet) listens(limit time.Duration) error {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		if conn, err := net.Dial("tcp", f.rendezvous); err == nil {
			return conn.Close()
		}
		if err := f.bench.sleep(100 * time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s does not serve its rendezvous within %v", f.name, limit)
}

// names are those of the workers that run, in the order of their start.
func (f *fleet) names() []string {
	return slices.SortedFunc(maps.Keys(f.workers), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
}

func (b *bench) sleep(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-b.ctx.Done():
		return b.ctx.Err()
	}
}
