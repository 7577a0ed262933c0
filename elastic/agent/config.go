// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"
)

// Config is the configuration of an agent.
type Config struct {
	// Name is the worker's, the same each time that it starts, and no other's in its job.
	Name string
	// Job names the job. Agents of different jobs do not hear each other.
	Job string
	// Socket is where the worker attaches: unix:PATH, or HOST:PORT of this machine.
	Socket string
	// Gossip is the address to gossip at, HOST:PORT, by TCP and UDP. Port 0 is any.
	Gossip string
	// Advertise is the host at which others reach this agent; if empty, that of Gossip or, if that is 0.0.0.0,
	// the machine's private address.
	Advertise string
	// Seeds are addresses of other agents, HOST:PORT. A host may have several addresses; who cannot be
	// reached is retried. One that can is enough.
	Seeds []string
	// Key encrypts gossip and the agreement, and keeps strangers out: 16, 24 or 32 bytes, none for no encryption.
	Key []byte
	// Found lets this member create the first view. It must be set for exactly one worker, such as
	// index 0.
	Found bool
	// Minimum is the number of members below which the worker must wait.
	Minimum int
	// Maximum is the greatest number of members of a view, 0 for none. The others stand by.
	Maximum int
	// Force is how long members without a quorum wait before they continue by themselves; 0 means forever. It keeps a
	// training running when most of its workers die at once; if these have not died but are partitioned, both sides
	// train.
	Force time.Duration
	// RollCall returns the gossip hosts of all workers that may be alive, including this one; a host with several
	// workers is listed once per worker. Workers not listed must be permanently dead. It is called while there is no
	// quorum; the members continue once all listed ones have answered. It may be nil.
	RollCall func(context.Context) ([]string, error)
	// WorkerTimeout is how long a worker may be silent before its agent takes leave for it.
	WorkerTimeout time.Duration
	// Log takes what operators want to know.
	Log *slog.Logger
}

// DefaultConfig returns what fits a job whose workers have a network of their own, as Pods have.
func DefaultConfig(name string) Config {
	return Config{
		Name:          name,
		Job:           "default",
		Socket:        "127.0.0.1:7947",
		Gossip:        "0.0.0.0:7946", // memberlist's port
		Minimum:       1,
		WorkerTimeout: 10 * time.Second, // ten beats, because a busy interpreter misses some
		Log:           slog.New(slog.DiscardHandler),
	}
}

// Validate validates a configuration.
func (c Config) Validate() error {
	if c.Name == "" || len(c.Name) > 128 {
		return fmt.Errorf("cannot use the name %.40q: it must have 1 to 128 bytes", c.Name)
	}
	if c.Job == "" || len(c.Job) > 128 {
		return fmt.Errorf("cannot use the job %.40q: it must have 1 to 128 bytes", c.Job)
	}
	if n := len(c.Key); n != 0 && n != 16 && n != 24 && n != 32 {
		return fmt.Errorf("cannot use the key: it has %d bytes, must be 16, 24 or 32", n)
	}
	if c.Minimum < 1 {
		return fmt.Errorf("cannot use the minimum of %d members: must be at least 1", c.Minimum)
	}
	if c.Maximum != 0 && c.Maximum < c.Minimum {
		return fmt.Errorf("cannot use the maximum of %d members: the minimum is %d", c.Maximum, c.Minimum)
	}
	if c.Force < 0 || c.WorkerTimeout <= 0 {
		return fmt.Errorf("cannot use the times to force %v and for a worker %v: they must be positive", c.Force, c.WorkerTimeout)
	}
	for _, address := range append([]string{c.Gossip}, c.Seeds...) {
		if _, _, err := splitAddress(address); err != nil {
			return err
		}
	}
	return nil
}

func splitAddress(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("cannot use the address %.60q: it must be HOST:PORT", address)
	}
	return host, port, nil
}
