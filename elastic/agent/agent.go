// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"

	"diwan.dev/diwan/elastic"
)

// An Agent waits for a worker and makes it a member.
type Agent struct {
	config   Config
	listener net.Listener

	place chan struct{} // holds a token while there is a membership

	mu       sync.Mutex
	state    State
	changed  chan struct{} // closed when state is another
	attached bool          // whether there is a worker; its membership outlasts it a little
}

// Listen opens the socket to which a worker connects. Anyone who can reach it can use it: a Unix socket
// is for its owner only.
func Listen(config Config) (*Agent, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	network, address := "tcp", config.Socket
	if path, ok := strings.CutPrefix(config.Socket, "unix:"); ok {
		network, address = "unix", path
		if err := removeStale(path); err != nil {
			return nil, err
		}
	} else if host, _, err := splitAddress(address); err != nil {
		return nil, err
	} else if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("cannot listen for a worker at %s: it must be unix:PATH or a loopback address", address)
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for a worker: %w", err)
	}
	if network == "unix" {
		if err := os.Chmod(address, 0o600); err != nil {
			listener.Close()
			return nil, fmt.Errorf("cannot keep the socket private: %w", err)
		}
	}
	return &Agent{
		config: config, listener: listener, place: make(chan struct{}, 1),
		state: State{Rank: -1, Waiting: noWorker}, changed: make(chan struct{}),
	}, nil
}

const noWorker = "no worker is attached"

// removeStale removes a socket that a dead agent has left.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.Mode()&fs.ModeSocket == 0 {
		err = errors.New("it exists and is not a socket")
	}
	if err == nil {
		if conn, dialErr := net.Dial("unix", path); dialErr == nil {
			conn.Close()
			err = errors.New("another agent listens there")
		} else {
			err = os.Remove(path)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot listen for a worker at %s: %w", path, err)
	}
	return nil
}

// Socket is where a worker attaches, in the form of Config.Socket.
func (a *Agent) Socket() string {
	address := a.listener.Addr()
	if address.Network() == "unix" {
		return "unix:" + address.String()
	}
	return address.String()
}

// Run serves workers until ctx ends. It takes leave for the one that is attached before it returns.
func (a *Agent) Run(ctx context.Context) error {
	var connections sync.WaitGroup
	stop := context.AfterFunc(ctx, func() { a.listener.Close() })
	defer stop()
	for {
		conn, err := a.listener.Accept()
		if err != nil {
			connections.Wait()
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("cannot accept a worker: %w", err)
		}
		connections.Go(func() { a.serve(ctx, conn) })
	}
}

// attach notes that there is a worker; false if there was one.
func (a *Agent) attach() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.attached
	a.attached = true
	return !was
}

func (a *Agent) detach() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.attached = false
}

// publish makes a state known.
func (a *Agent) publish(s State) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state = s
	close(a.changed)
	a.changed = make(chan struct{})
}

// latest is the state, and a channel that is closed when there is another.
func (a *Agent) latest() (State, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state, a.changed
}

// newMember gives a worker an identity that no other run has.
func (a *Agent) newMember(join Join) elastic.Member {
	mark := make([]byte, 4)
	rand.Read(mark)
	return elastic.Member{
		ID: a.config.Name + "." + hex.EncodeToString(mark), Name: a.config.Name, Address: join.Address, Slots: join.Slots,
	}
}
