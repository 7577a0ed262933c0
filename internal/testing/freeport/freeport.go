// SPDX-License-Identifier: Apache-2.0

// Package freeport finds addresses for programs that must be told theirs before they start.
package freeport

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
)

// The system gives the ports from 32768 (Linux) or 49152 (macOS, Windows) to whoever listens on any: one of those that
// is free now may be another's by the time that its program starts.
const first, end = 20000, 32768

// A process goes through the ports from a random one on, so that none is given twice while the program that was told
// it starts. The count is the process's, as the ports are the machine's.
var (
	from  = rand.Uint32N(end - first)
	given atomic.Uint32
)

// Address is a HOST:PORT of the loopback that is free for TCP and UDP, and stays so unless a program asks for it.
// A process gets each port once, until it has had all.
func Address() (string, error) {
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(first+int((from+given.Add(1))%(end-first))))
		tcp, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		udp, err := net.ListenPacket("udp", address)
		tcp.Close()
		if err == nil {
			udp.Close()
			return address, nil
		}
	}
	return "", errors.New("no port below those that the system gives is free for TCP and UDP")
}
