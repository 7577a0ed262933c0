// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
)

func (n *namespaces) Restore(used map[string]Sandbox) error {
	defer n.notify()
	found, err := n.bridge.find()
	if err != nil {
		return err
	}
	n.mu.Lock()
	for _, s := range used {
		n.addresses.claim(s.IP)
	}
	n.mu.Unlock()
	var errs []error
	for uid, sandbox := range used {
		s, err := n.restore(sandbox, found)
		if err != nil {
			errs = append(errs, fmt.Errorf("cannot restore the network of Pod %s: %w", uid, err))
			continue
		}
		n.mu.Lock()
		n.used[uid] = s
		n.mu.Unlock()
	}
	for _, s := range found {
		// Processes that no Pod owns: their network ends with them, and until
		// then their address is not given to another.
		n.mu.Lock()
		n.addresses.claim(s.ip)
		n.mu.Unlock()
		s.file.Close()
	}
	return errors.Join(errs...)
}

// restore takes the sandbox's namespace out of found, or recreates it.
func (n *namespaces) restore(sandbox Sandbox, found map[netip.Addr]*space) (*space, error) {
	if !n.cfg.Plan.Pods.Contains(sandbox.IP) || sandbox.IP == n.HostIP() {
		return nil, nil // the host's network
	}
	if s, ok := found[sandbox.IP]; ok {
		delete(found, sandbox.IP)
		return s, nil
	}
	if s := n.takeReady(sandbox.IP); s != nil {
		return s, nil
	}
	// Its namespace is on its way out, but its veth may still hold the name.
	if err := n.bridge.detach(n.bridge.portName(sandbox.IP)); err != nil {
		return nil, err
	}
	return n.bridge.newSpace(sandbox.IP)
}

// takeReady takes a spare out of the pool that was given the address before
// Restore claimed it.
func (n *namespaces) takeReady(ip netip.Addr) *space {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, s := range n.ready {
		if s.ip == ip {
			n.ready = append(n.ready[:i:i], n.ready[i+1:]...)
			return s
		}
	}
	return nil
}

// find opens the namespaces of this network in which processes live, by
// address. It looks at each namespace of the machine once.
func (b *bridge) find() (map[netip.Addr]*space, error) {
	links, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	own, err := os.Readlink(threadNetns)
	if err != nil {
		return nil, fmt.Errorf("cannot read own network namespace: %w", err)
	}
	seen := map[string]bool{own: true}
	found := map[netip.Addr]*space{}
	for _, link := range links {
		name, err := os.Readlink(link)
		if err != nil || seen[name] {
			continue // the process is gone, or its namespace is known
		}
		seen[name] = true
		file, err := os.Open(link)
		if err != nil {
			continue
		}
		ip, err := b.addressIn(file)
		if _, twice := found[ip]; err != nil || twice || !b.plan.Pods.Contains(ip) {
			file.Close()
			continue
		}
		found[ip] = &space{ip: ip, file: file}
	}
	return found, nil
}

// addressIn is the IPv4 address of a Pod's interface in a namespace.
func (b *bridge) addressIn(ns *os.File) (ip netip.Addr, err error) {
	err = inNamespace(b.home, ns, func() error {
		device, err := net.InterfaceByName(podDevice)
		if err != nil {
			return err
		}
		all, err := device.Addrs()
		if err != nil {
			return err
		}
		for _, a := range all {
			if v4, ok := ipv4(a); ok {
				ip = v4
				return nil
			}
		}
		return fmt.Errorf("no IPv4 address on %s", podDevice)
	})
	return ip, err
}
