// SPDX-License-Identifier: Apache-2.0

package network

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
)

// Plan is the addresses of one cluster on this machine.
type Plan struct {
	// Home is the absolute path of the directory that holds the plan.
	Home string `json:"-"`
	// ID names the cluster's devices: six hexadecimal digits of the home's path.
	ID string `json:"id"`
	// Pods is the subnet of Pods, a /22 (1,020 Pods); its first address is the
	// bridge's.
	Pods netip.Prefix `json:"pods"`
	// Services holds the cluster IPs, a /22: kube-apiserver's
	// --service-cluster-ip-range.
	Services netip.Prefix `json:"services"`
}

const (
	planFile = "network.json"
	// slots is how many pairs of /22 fit into 10.128.0.0/9, the half of
	// 10.0.0.0/8 that other cluster tools and home routers use least.
	slots = 1 << 12
)

// PlanFor returns the plan of a home directory. The first call chooses subnets
// that overlap no route of the machine and writes them to network.json in the home;
// later calls return the same, because the Services of a cluster keep their addresses.
func PlanFor(home string) (Plan, error) {
	home, err := filepath.Abs(home)
	if err != nil {
		return Plan{}, fmt.Errorf("cannot resolve home %s: %w", home, err)
	}
	path := filepath.Join(home, planFile)
	text, err := os.ReadFile(path)
	switch {
	case err == nil:
		return readPlan(path, text)
	case !errors.Is(err, fs.ErrNotExist):
		return Plan{}, fmt.Errorf("cannot read network plan: %w", err)
	}
	plan := choosePlan(home, hostPrefixes())
	plan.Home = home
	text, err = json.MarshalIndent(plan, "", "  ")
	if err != nil {
		return Plan{}, fmt.Errorf("cannot write network plan: %w", err)
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return Plan{}, fmt.Errorf("cannot write network plan: %w", err)
	}
	temporary := path + ".tmp"
	if err := os.WriteFile(temporary, append(text, '\n'), 0o600); err != nil {
		return Plan{}, fmt.Errorf("cannot write network plan: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return Plan{}, fmt.Errorf("cannot write network plan: %w", err)
	}
	return plan, nil
}

func readPlan(path string, text []byte) (Plan, error) {
	var plan Plan
	if err := json.Unmarshal(text, &plan); err != nil {
		return Plan{}, fmt.Errorf("cannot read network plan %s: %w", path, err)
	}
	if len(plan.ID) != 6 || plan.Pods.Bits() < 22 || plan.Pods.Bits() > 24 || !plan.Pods.Addr().Is4() || !plan.Services.Addr().Is4() {
		return Plan{}, fmt.Errorf("cannot use network plan %s: it needs an id of six characters and IPv4 prefixes for pods (/22 to /24) and services; remove the file together with the cluster's data", path)
	}
	plan.Home = filepath.Dir(path)
	return plan, nil
}

// choosePlan takes the slot that the home's hash names, or the next one that
// overlaps nothing that is taken.
func choosePlan(home string, taken []netip.Prefix) Plan {
	sum := sha256.Sum256([]byte(home))
	first := int(binary.BigEndian.Uint16(sum[:2])) % slots
	plan := slot(first)
	for i := range slots {
		candidate := slot((first + i) % slots)
		if !overlaps(candidate, taken) {
			plan = candidate
			break
		}
	}
	plan.ID = hex.EncodeToString(sum[:3])
	return plan
}

func slot(i int) Plan {
	at := func(n int) netip.Prefix {
		base := uint32(10)<<24 | 1<<23 | uint32(2*i+n)<<10
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], base)
		return netip.PrefixFrom(netip.AddrFrom4(b), 22)
	}
	return Plan{Pods: at(0), Services: at(1)}
}

func overlaps(plan Plan, taken []netip.Prefix) bool {
	for _, t := range taken {
		if t.Overlaps(plan.Pods) || t.Overlaps(plan.Services) {
			return true
		}
	}
	return false
}

// Gateway is the first address of the Pods' subnet, at which they reach this
// machine: the bridge's. This process listens at Network.Dialable of it.
func (p Plan) Gateway() netip.Addr { return p.Pods.Masked().Addr().Next() }

// addresses hands out the Pods' addresses in turn, so that one that was given
// back rests as long as possible.
type addresses struct {
	plan Plan
	last netip.Addr
	used map[netip.Addr]bool
}

func newAddresses(plan Plan) *addresses {
	return &addresses{plan: plan, last: plan.Gateway(), used: map[netip.Addr]bool{}}
}

func (a *addresses) take() (netip.Addr, error) {
	ip := a.last
	for range 1 << (32 - a.plan.Pods.Bits()) {
		ip = ip.Next()
		if !a.plan.Pods.Contains(ip.Next()) { // ip is the broadcast address
			ip = a.plan.Gateway().Next()
		}
		if !a.used[ip] {
			a.used[ip], a.last = true, ip
			return ip, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("cannot find an address for a Pod: all of %s are in use", a.plan.Pods)
}

func (a *addresses) claim(ip netip.Addr)   { a.used[ip] = true }
func (a *addresses) release(ip netip.Addr) { delete(a.used, ip) }
