// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// loopbackTimeout is far more than a connection on loopback takes.
const loopbackTimeout = 5 * time.Second

// checkLoopback finds out whether programs of this machine reach each other on
// 127.0.0.1. Without that everything would start, and wait for each other in vain.
func checkLoopback(ctx context.Context) error {
	listener, err := listenLoopback()
	if err != nil {
		return fmt.Errorf("cannot listen on a loopback port: %w", err)
	}
	defer listener.Close()
	dialer := net.Dialer{Timeout: loopbackTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", listener.Addr().String())
	switch {
	case err == nil:
		return conn.Close()
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return fmt.Errorf("cannot reach 127.0.0.1: %w", errNoPort)
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH):
		return fmt.Errorf("cannot reach 127.0.0.1: the loopback interface is down: %w; start it with `ip link set lo up`, as root", err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("cannot reach 127.0.0.1: %w; look for a firewall rule that drops packets of the loopback interface", err)
	}
	return fmt.Errorf("cannot reach 127.0.0.1: %w", err)
}
