// SPDX-License-Identifier: Apache-2.0

package access

import (
	"bufio"
	"encoding/hex"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// established is the state of a connected socket in the kernel's tables.
const established = "01"

// SameUser reports whether a connection comes from a program of this machine,
// in this network namespace, that the user who runs this process owns, or root,
// and that still holds it open.
func SameUser(peer, here netip.AddrPort) bool {
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		if uid, ok := socketOwner(table, peer, here); ok {
			return uid == 0 || uid == os.Getuid()
		}
	}
	return false
}

// socketOwner finds the socket that is bound to local and connected to remote in
// a table of the kernel's, and the user who opened it. A socket that no program
// holds any more has no owner; the table gives root for it.
func socketOwner(table string, local, remote netip.AddrPort) (uid int, ok bool) {
	file, err := os.Open(table)
	if err != nil {
		return 0, false
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		// sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode …
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 || kernelAddress(fields[1]) != local || kernelAddress(fields[2]) != remote {
			continue
		}
		if fields[3] != established || fields[9] == "0" {
			return 0, false
		}
		uid, err := strconv.Atoi(fields[7])
		return uid, err == nil
	}
	return 0, false
}

// kernelAddress reads an address as the kernel writes it: hexadecimal words in
// the machine's order of bytes, here that of little-endian machines, and the port.
func kernelAddress(text string) netip.AddrPort {
	ip, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(ip)
	number, portErr := strconv.ParseUint(port, 16, 16)
	if err != nil || portErr != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	addr, _ := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(addr.Unmap(), uint16(number))
}
