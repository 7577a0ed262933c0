// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// machine is what this machine has used; zero values are unknown.
type machine struct {
	cpu        time.Duration // since the start
	memoryUsed uint64        // bytes that are not available to a new program
	booted     time.Time
}

// tick is the unit of /proc/stat: USER_HZ is 100 on every architecture that Go knows.
const tick = 10 * time.Millisecond

// readMachine reads /proc/stat and /proc/meminfo.
func readMachine() machine {
	var m machine
	if text, err := os.ReadFile("/proc/stat"); err == nil {
		for line := range bytes.Lines(text) {
			fields := bytes.Fields(line)
			switch {
			case len(fields) > 8 && string(fields[0]) == "cpu":
				// user, nice, system, then idle and waiting, then interrupts and steal
				for _, i := range []int{1, 2, 3, 6, 7, 8} {
					m.cpu += time.Duration(number(fields[i])) * tick
				}
			case len(fields) == 2 && string(fields[0]) == "btime":
				m.booted = time.Unix(int64(number(fields[1])), 0)
			}
		}
	}
	var total, available uint64
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range bytes.Lines(text) {
			fields := bytes.Fields(line)
			if len(fields) < 2 {
				continue
			}
			switch string(fields[0]) {
			case "MemTotal:":
				total = number(fields[1]) << 10
			case "MemAvailable:":
				available = number(fields[1]) << 10
			}
		}
	}
	if total > available {
		m.memoryUsed = total - available
	}
	return m
}

// number parses a decimal; anything else is 0.
func number(text []byte) uint64 {
	n, _ := strconv.ParseUint(string(text), 10, 64)
	return n
}
