// SPDX-License-Identifier: Apache-2.0

package processcluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// patience is how long a part may take to end after SIGTERM.
const patience = 20 * time.Second

// pause is the delay before a component that exited by itself is restarted.
const pause = 200 * time.Millisecond

// process is a part that was started.
type process struct {
	part Part
	done chan struct{} // closed when it has ended
	err  error

	mu   sync.Mutex
	cmd  *exec.Cmd // the one that runs
	over bool      // it was told to end
}

// start starts a component; its output goes to its log.
func (c *Cluster) start(part Part) error {
	cmd, err := c.run(part)
	if err != nil {
		return err
	}
	p := &process{part: part, cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = c.keep(p)
	}()
	c.parts[part] = p
	return nil
}

func (c *Cluster) run(part Part) (*exec.Cmd, error) {
	log, err := os.OpenFile(c.Log(part), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(c.program, append([]string{part.command()}, c.arguments(part)...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", part, err)
	}
	return cmd, nil
}

// keep waits for the end of a part. Kubernetes' controller manager ends when the API
// server is away for some seconds, and its scheduler when a Pod turns out to be
// bound elsewhere than it knows, since the answer was lost. They are started again,
// as a kubelet does.
func (c *Cluster) keep(p *process) error {
	for cmd := p.cmd; ; {
		err := cmd.Wait()
		if p.told() || p.part != ControllerManager && p.part != Scheduler {
			return err
		}
		time.Sleep(pause)
		p.mu.Lock()
		if !p.over {
			cmd, err = c.run(p.part)
			p.cmd, p.over = cmd, err != nil
		}
		over := p.over
		p.mu.Unlock()
		if over {
			return err
		}
	}
}

// told reports whether the part was told to end.
func (p *process) told() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.over
}

// signal ends the part, and what would be started in its place.
func (p *process) signal(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s)
	}
}

// end asks the part to end, waits, and kills it when it does not.
func (p *process) end() error {
	select {
	case <-p.done:
		return nil
	default:
	}
	p.signal(syscall.SIGTERM)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		p.signal(syscall.SIGKILL)
		<-p.done
		return fmt.Errorf("%s did not end within %s of SIGTERM", p.part, patience)
	}
}

// ended says why the part ended; nil while it lives.
func (p *process) ended() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended: %w", p.part, errors.Join(p.err, errors.New("see its log")))
	default:
		return nil
	}
}

// Ended returns which components exited by themselves, and how; nil while all
// are running.
func (c *Cluster) Ended() error {
	var errs []error
	for _, p := range c.parts {
		errs = append(errs, p.ended())
	}
	return errors.Join(errs...)
}

// Kill ends a part as a power cut would. Containers live on without their node.
func (c *Cluster) Kill(part Part) {
	c.t.Helper()
	p := c.parts[part]
	if p == nil {
		c.t.Fatalf("%s does not run", part)
	}
	if err := p.ended(); err != nil {
		c.t.Fatal(err)
	}
	delete(c.parts, part) // its end is no failure
	p.signal(syscall.SIGKILL)
	<-p.done
}

// Start restarts a killed component with the same configuration. It does not
// wait for it.
func (c *Cluster) Start(part Part) {
	c.t.Helper()
	if err := c.start(part); err != nil {
		c.t.Fatal(err)
	}
}

// KillMachine ends a node as the power cut of its machine would: with all that runs
// in its containers, at once.
func (c *Cluster) KillMachine(node Part) {
	c.t.Helper()
	c.Kill(node)
	for {
		pids := c.programs(node)
		if len(pids) == 0 {
			return
		}
		// What waits for a program is not to see it end first, and write that down.
		for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
			for _, pid := range pids {
				_ = syscall.Kill(pid, signal)
			}
		}
	}
}

// KillPod kills the programs of a Pod, as the kernel does when memory runs out,
// and returns how many. The node starts its containers again where their Pod
// says so.
func (c *Cluster) KillPod(uid types.UID) (killed int) {
	for _, pid := range processes("environ", "DIWAN_CONTAINER_ID="+string(uid)+"/") {
		// The leader of a container's session is the node's, which waits.
		if session, err := unix.Getsid(pid); err == nil && session != pid && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}

// Empty returns what a node still keeps of Pods; nil if nothing.
func (c *Cluster) Empty(node Part) error {
	pods, err := os.ReadDir(filepath.Join(c.home(node), "node", "pods"))
	if err == nil && len(pods) > 0 {
		err = fmt.Errorf("%s keeps %d Pods, such as %s", node, len(pods), pods[0].Name())
	}
	return err
}

// programs are the processes in the containers of a node, which see files of its
// home.
func (c *Cluster) programs(node Part) []int { return processes("mountinfo", c.home(node)+"/") }

// processes lists those of which a file in /proc has a text.
func processes(file, text string) (pids []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/" + file)
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err == nil && bytes.Contains(content, []byte(text)) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// leftovers finds processes of the cluster's containers, and ends them.
func (c *Cluster) leftovers() error {
	var errs []error
	for _, pid := range append(c.programs(Node), c.programs(SecondNode)...) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		errs = append(errs, fmt.Errorf("process %d is left: %q", pid, strings.ReplaceAll(string(line), "\x00", " ")))
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return errors.Join(errs...)
}
