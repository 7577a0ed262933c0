// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Process is a running program. Its methods may not be called by several
// goroutines at once.
type Process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan []byte // closed when the output ends
	errors *tail
}

// ErrEnded is wrapped by errors of a process that has ended.
var ErrEnded = errors.New("peer ended")

// Start starts a program. It ends when ctx does, or with Close.
func Start(ctx context.Context, python string, arguments ...string) (*Process, error) {
	cmd := exec.CommandContext(ctx, python, arguments...)
	// One thread a peer: what is measured is work, not cores.
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONHASHSEED=0", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1",
		"MKL_NUM_THREADS=1", "NUMEXPR_NUM_THREADS=1", "TF_CPP_MIN_LOG_LEVEL=3", "JAX_PLATFORMS=cpu", "CUDA_VISIBLE_DEVICES=",
		"XLA_FLAGS=--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
	p := &Process{cmd: cmd, lines: make(chan []byte), errors: &tail{}}
	cmd.Stderr = p.errors
	cmd.WaitDelay = 5 * time.Second
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start peer: %w", err)
	}
	go p.read(out)
	return p, nil
}

// read owns the output: it hands over lines until the program ends.
func (p *Process) read(out io.Reader) {
	defer close(p.lines)
	scanner := bufio.NewScanner(out)
	scanner.Buffer(nil, 64<<20)
	for scanner.Scan() {
		p.lines <- append([]byte(nil), scanner.Bytes()...)
	}
}

// Call sends a request and reads the reply into a pointer. A reply with an
// error fails the call, and the process goes on; where ctx ends first, or the
// program does, the process is of no more use.
func (p *Process) Call(ctx context.Context, request, reply any) error {
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return p.broken(err)
	}
	select {
	case <-ctx.Done():
		p.kill()
		return fmt.Errorf("%w: no reply in time: %w", ErrEnded, ctx.Err())
	case text, ok := <-p.lines:
		if !ok {
			return p.broken(io.ErrUnexpectedEOF)
		}
		var failure struct{ Error string }
		if err := json.Unmarshal(text, &failure); err != nil {
			return fmt.Errorf("cannot read peer's reply %.100q: %w", text, err)
		}
		if failure.Error != "" {
			return errors.New(failure.Error)
		}
		return json.Unmarshal(text, reply)
	}
}

// broken explains why the program ended.
func (p *Process) broken(err error) error {
	if text := strings.TrimSpace(p.errors.String()); text != "" {
		return fmt.Errorf("%w: %w: %s", ErrEnded, err, text[strings.LastIndexByte(text, '\n')+1:])
	}
	return fmt.Errorf("%w: %w", ErrEnded, err)
}

func (p *Process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
}

// Close ends the program and waits until it has.
func (p *Process) Close() error {
	_ = p.in.Close()
	timer := time.AfterFunc(3*time.Second, p.kill)
	defer timer.Stop()
	for range p.lines { // nothing but what was not asked for
	}
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil // its replies have said what was wrong
	}
	return err
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - 4096; over > 0 {
		t.text = append([]byte(nil), t.text[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
