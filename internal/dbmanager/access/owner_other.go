// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package access

import "net/netip"

// SameUser reports whether a connection comes from this machine: which of its
// users it is cannot be told here.
func SameUser(peer, _ netip.AddrPort) bool { return peer.Addr().IsLoopback() }
