// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"diwan.dev/diwan/elastic"
	"diwan.dev/diwan/internal/testing/freeport"
)

// TestMain lets the test binary run as an agent, so that tests can kill and stop agents as processes.
func TestMain(m *testing.M) {
	if text := os.Getenv("DIWAN_TEST_AGENT"); text != "" {
		if err := runAgent(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// agentOptions are what a test sets of an agent's configuration.
type agentOptions struct {
	Name, Socket, Gossip string
	Seeds                []string
	Found                bool
	Minimum, Maximum     int
	WorkerTimeout        time.Duration
	Key                  []byte
	Roll                 string // a file of hosts
}

func runAgent(text string) error {
	var o agentOptions
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	config := DefaultConfig(o.Name)
	config.Job, config.Socket, config.Gossip, config.Seeds, config.Found, config.Key = "test", o.Socket, o.Gossip, o.Seeds, o.Found, o.Key
	config.Minimum, config.Maximum, config.WorkerTimeout = max(1, o.Minimum), o.Maximum, o.WorkerTimeout
	if o.Roll != "" {
		config.RollCall = func(context.Context) ([]string, error) {
			text, err := os.ReadFile(o.Roll)
			return strings.Fields(string(text)), err
		}
	}
	config.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	agent, err := Listen(config)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println("ready")
	return agent.Run(ctx)
}

// team is some agents of a job, each a process, with a worker that is this test.
type team struct {
	t     *testing.T
	dir   string
	seed  string
	edit  func(*agentOptions)
	peers map[string]*peer
}

type peer struct {
	t       *testing.T
	name    string
	process *exec.Cmd
	worker  net.Conn
	replies chan Reply
	state   State // the latest that was told
}

func newTeam(t *testing.T, edit func(*agentOptions)) *team {
	seed, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	return &team{t: t, dir: t.TempDir(), seed: seed, edit: edit, peers: map[string]*peer{}}
}

// start runs an agent and attaches a worker to it. w0 founds.
func (x *team) start(name string) *peer {
	x.t.Helper()
	p := x.agent(name)
	p.join()
	return p
}

// agent runs an agent alone.
func (x *team) agent(name string) *peer {
	x.t.Helper()
	o := agentOptions{
		Name: name, Socket: "unix:" + filepath.Join(x.dir, name), Gossip: "127.0.0.1:0", Seeds: []string{x.seed}, WorkerTimeout: time.Minute,
	}
	if name == "w0" {
		o.Gossip, o.Found, o.Seeds = x.seed, true, nil
	}
	if x.edit != nil {
		x.edit(&o)
	}
	text, err := json.Marshal(o)
	if err != nil {
		x.t.Fatal(err)
	}
	p := &peer{t: x.t, name: name, process: exec.Command(os.Args[0])}
	p.process.Env = append(os.Environ(), "DIWAN_TEST_AGENT="+string(text))
	p.process.Stderr = os.Stderr
	out, err := p.process.StdoutPipe()
	if err != nil {
		x.t.Fatal(err)
	}
	if err := p.process.Start(); err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() {
		p.process.Process.Signal(syscall.SIGCONT)
		p.process.Process.Kill()
		p.process.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		x.t.Fatalf("%s does not start: %q %v", name, line, err)
	}
	x.peers[name] = p
	return p
}

// dial connects to the agent and sends lines.
func (p *peer) dial(lines ...string) net.Conn {
	p.t.Helper()
	var o agentOptions
	for _, env := range p.process.Env {
		if text, ok := strings.CutPrefix(env, "DIWAN_TEST_AGENT="); ok {
			json.Unmarshal([]byte(text), &o)
		}
	}
	conn, err := net.Dial("unix", strings.TrimPrefix(o.Socket, "unix:"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	for _, line := range lines {
		fmt.Fprintln(conn, line)
	}
	return conn
}

// join attaches the worker.
func (p *peer) join() {
	p.worker = p.dial(fmt.Sprintf(`{"join":{"address":"127.0.0.1:%d"}}`, 10000+len(p.name)))
	p.replies = make(chan Reply, 1000)
	go func(conn net.Conn, replies chan Reply) {
		defer close(replies)
		for decoder := json.NewDecoder(conn); ; {
			var r Reply
			if decoder.Decode(&r) != nil {
				return
			}
			replies <- r
		}
	}(p.worker, p.replies)
}

func (p *peer) say(format string, args ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.worker, format+"\n", args...); err != nil {
		p.t.Fatal(err)
	}
}

// await reads states until one satisfies a condition.
func (p *peer) await(what string, condition func(State) bool) State {
	p.t.Helper()
	timeout := time.After(40 * time.Second)
	for {
		if p.state.View.Number > 0 && condition(p.state) {
			return p.state
		}
		select {
		case r, ok := <-p.replies:
			if !ok {
				p.t.Fatalf("%s: the agent hung up while waiting for %s", p.name, what)
			}
			if r.Error != "" {
				p.t.Fatalf("%s: %s", p.name, r.Error)
			}
			if r.State != nil {
				p.state = *r.State
			}
		case <-timeout:
			p.t.Fatalf("%s: no state in which %s; the last is %+v", p.name, what, p.state)
		}
	}
}

// awaitNames waits until all of the given workers have one view, of the given names, and returns the last's state.
func (x *team) awaitNames(names string) State {
	x.t.Helper()
	var latest elastic.View
	for agreeing := 0; ; {
		for _, name := range strings.Fields(names) {
			state := x.peers[name].await("the members are "+names, func(s State) bool { return sameNames(s, names) && s.View.Number >= latest.Number })
			if agreeing++; !state.View.Same(latest) {
				latest, agreeing = state.View, 1
			}
			if agreeing == len(strings.Fields(names)) {
				return state
			}
		}
	}
}

func sameNames(s State, names string) bool {
	wanted := strings.Fields(names)
	if len(s.View.Members) != len(wanted) {
		return false
	}
	have := map[string]bool{}
	for _, m := range s.View.Members {
		have[m.Name] = true
	}
	for _, name := range wanted {
		if !have[name] {
			return false
		}
	}
	return true
}
