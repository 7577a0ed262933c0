// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package access

import (
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// SameUser reports whether a connection comes from a program of this machine that
// the user who runs this process owns, as lsof sees it, and that still holds it
// open. Without lsof nobody's does.
func SameUser(peer, here netip.AddrPort) bool {
	if !peer.Addr().IsLoopback() {
		return false
	}
	// A line for each socket of this user at either end, such as n127.0.0.1:50000->127.0.0.1:6789.
	out, err := exec.Command("lsof", "-nP", "-a", "-u", strconv.Itoa(os.Getuid()), "-iTCP@"+peer.String(), "-sTCP:ESTABLISHED", "-Fn").Output()
	return err == nil && slices.Contains(strings.Split(string(out), "\n"), "n"+peer.String()+"->"+here.String())
}
