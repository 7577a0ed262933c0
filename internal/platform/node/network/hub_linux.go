// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"diwan.dev/diwan/internal/platform/node/rootless"
)

// beside reports whether the bridge has a network namespace beside this process's.
func (b *bridge) beside() bool { return b.home == nil }

// inHub runs f on a thread in the network namespace of the bridge.
func (b *bridge) inHub(f func() error) error {
	if !b.beside() {
		return f()
	}
	return inNamespace(nil, b.hub, f)
}

// openHub opens the network namespace of the bridge. In a user namespace, where
// the machine's own network cannot be changed, it is one beside it: that which the containers of
// a killed process hold open, or a new one.
func (b *bridge) openHub() (err error) {
	if _, rootless := rootless.Owner(); !rootless {
		if b.home, err = os.Open(threadNetns); err == nil {
			b.hub, err = os.Open(threadNetns)
		}
		if err != nil {
			return fmt.Errorf("cannot open network namespace: %w", err)
		}
		return nil
	}
	if b.hub = findHub(bridgePrefix + b.plan.ID); b.hub != nil {
		return nil
	}
	return onThread(nil, func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("cannot create network namespace: %w", err)
		}
		if b.hub, err = os.Open(threadNetns); err != nil {
			return fmt.Errorf("cannot open network namespace: %w", err)
		}
		// Without IPv6 on the bridge there is no duplicate address detection to wait for.
		_ = os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
		lo, err := netlink.LinkByName("lo")
		if err == nil {
			err = netlink.LinkSetUp(lo)
		}
		if err != nil {
			return fmt.Errorf("cannot start loopback: %w", err)
		}
		return nil
	})
}

// findHub finds the namespace with a device of this name among those that the
// user's processes hold open as HoldFile.
func findHub(device string) *os.File {
	links, err := filepath.Glob(fmt.Sprintf("/proc/[0-9]*/fd/%d", HoldFile))
	if err != nil {
		return nil
	}
	seen := map[string]bool{}
	for _, link := range links {
		name, err := os.Readlink(link)
		if err != nil || seen[name] || !strings.HasPrefix(name, "net:") {
			continue
		}
		seen[name] = true
		file, err := os.Open(link)
		if err != nil {
			continue
		}
		err = inNamespace(nil, file, func() error {
			_, err := netlink.LinkByName(device)
			return err
		})
		if err == nil {
			return file
		}
		file.Close()
	}
	return nil
}
