// SPDX-License-Identifier: Apache-2.0

package podssh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// Client runs commands in other Pods of a job.
type Client struct {
	// Keys is the directory of the job's keys.
	Keys string
	// Hosts is a hosts file that counts before the system's names. Default: none.
	Hosts string
	// Port is where the servers listen.
	Port int
	// Patience is how long a server is waited for that has no name yet, or does
	// not answer: Pods of a job begin in any order. Default 2 minutes.
	Patience time.Duration
	// Retry is how long is waited between attempts. Default 200 ms.
	Retry time.Duration
}

// DefaultClient is a Client with the keys of a directory.
func DefaultClient(keys string) Client {
	return Client{Keys: keys, Port: DefaultPort, Patience: 2 * time.Minute, Retry: 200 * time.Millisecond}
}

// Run runs a command on a host, as words that the shell there reads as one line,
// and returns its exit code.
func (c *Client) Run(ctx context.Context, host string, command []string, in io.Reader, out, errs io.Writer) (int, error) {
	key, err := readKey(c.Keys)
	if err != nil {
		return 0, err
	}
	user, name, found := strings.Cut(host, "@")
	if !found {
		user, name = "diwan", host
	}
	conn, err := c.connect(ctx, name)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	conn.SetDeadline(time.Now().Add(handshakeTime))
	client, channels, requests, err := ssh.NewClientConn(conn, name, &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.FixedHostKey(key.PublicKey()),
	})
	if err != nil {
		return 0, fmt.Errorf("cannot connect to %s: %w", name, err)
	}
	conn.SetDeadline(time.Time{})
	connection := ssh.NewClient(client, channels, requests)
	defer connection.Close()
	session, err := connection.NewSession()
	if err != nil {
		return 0, fmt.Errorf("cannot open a session on %s: %w", name, err)
	}
	defer session.Close()
	session.Stdout, session.Stderr = out, errs
	// The session waits for an input that it copies itself, also when the command
	// has ended.
	stdin, err := session.StdinPipe()
	if err != nil {
		return 0, fmt.Errorf("cannot open a session on %s: %w", name, err)
	}
	go func() { // ends with the input, or with the process
		io.Copy(stdin, in)
		stdin.Close()
	}()
	err = session.Run(strings.Join(command, " "))
	var exit *ssh.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitStatus(), nil
	case err != nil:
		return 0, fmt.Errorf("lost the command on %s: %w", name, err)
	}
	return 0, nil
}

// connect connects to a host as soon as it has a name and a server.
func (c *Client) connect(ctx context.Context, host string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	dialer := net.Dialer{Timeout: 10 * time.Second}
	for {
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(c.address(host), strconv.Itoa(c.Port)))
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot connect to %s in %v: %w", host, c.Patience, err)
		case <-time.After(c.Retry):
		}
	}
}

// address is a host's in the hosts file, or its name.
func (c *Client) address(host string) string {
	if c.Hosts == "" {
		return host
	}
	file, err := os.Open(c.Hosts)
	if err != nil {
		return host
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if words := strings.Fields(line); len(words) > 1 && slices.Contains(words[1:], host) {
			return words[0]
		}
	}
	return host
}
