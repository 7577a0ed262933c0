// SPDX-License-Identifier: Apache-2.0

package podssh

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
)

// Failed is ssh's exit code where it could not run the command.
const Failed = 255

// Main is the program of that name, ssh or sshd, with what follows it on the
// command line. It returns the exit code.
func Main(program string, args []string, in io.Reader, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	name, run := filepath.Base(program), runClient
	if name == "sshd" {
		run = runServer
	}
	code, err := run(ctx, args, in, out, errs)
	if err != nil {
		fmt.Fprintf(errs, "%s: %v\n", name, err)
		return Failed
	}
	return code
}

func runServer(ctx context.Context, args []string, _ io.Reader, _, errs io.Writer) (int, error) {
	o, err := parse(args, sshdValues)
	if err != nil {
		return 0, err
	}
	port, err := o.listenPort()
	if err != nil {
		return 0, err
	}
	server, err := NewServer(os.Getenv(EnvKeys))
	if err != nil {
		return 0, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(os.Getenv(EnvAddress), strconv.Itoa(port)))
	if err != nil {
		return 0, fmt.Errorf("cannot listen: %w", err)
	}
	fmt.Fprintf(errs, "Server listening on %s.\n", listener.Addr())
	return 0, server.Serve(ctx, listener)
}

func runClient(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) (int, error) {
	o, err := parse(args, sshValues)
	switch {
	case err != nil:
		return 0, err
	case o.host == "" || len(o.command) == 0:
		return 0, fmt.Errorf("want a host and a command: ssh HOST COMMAND…")
	}
	c := DefaultClient(os.Getenv(EnvKeys))
	c.Hosts = os.Getenv(EnvHosts)
	if o.port != 0 {
		c.Port = o.port
	}
	return c.Run(ctx, o.host, o.command, in, out, errs)
}
