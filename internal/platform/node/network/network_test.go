// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPlanIsStableAndAvoidsRoutes(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	first, err := PlanFor(home)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := PlanFor(home); err != nil || again != first {
		t.Errorf("got %v, %v, then %v", first, err, again)
	}
	free := choosePlan(home, nil)
	for _, taken := range []netip.Prefix{free.Pods, free.Services, netip.PrefixFrom(free.Services.Addr().Next(), 32)} {
		if got := choosePlan(home, []netip.Prefix{taken}); overlaps(got, []netip.Prefix{taken}) {
			t.Errorf("plan %v overlaps %s although other slots are free", got, taken)
		}
	}
	all := netip.MustParsePrefix("10.0.0.0/8")
	if got := choosePlan(home, []netip.Prefix{all}); got != free {
		t.Errorf("with every slot taken got %v, want the first choice %v", got, free)
	}
}

func TestPlanOfBadFile(t *testing.T) {
	t.Parallel()
	tests := []struct{ reason, text string }{
		{"not JSON", "x"},
		{"no prefixes", `{"id":"abcdef"}`},
		{"too few Pods", `{"id":"abcdef","pods":"10.128.0.0/28","services":"10.128.4.0/22"}`},
		{"too many Pods for one bridge", `{"id":"abcdef","pods":"10.128.0.0/16","services":"10.128.4.0/22"}`},
		{"IPv6", `{"id":"abcdef","pods":"fd00::/22","services":"10.128.4.0/22"}`},
	}
	for _, tt := range tests {
		home := t.TempDir()
		if err := os.WriteFile(filepath.Join(home, planFile), []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := PlanFor(home); err == nil || !strings.Contains(err.Error(), planFile) {
			t.Errorf("%s: got %v, want an error that names the file", tt.reason, err)
		}
	}
}

func TestAddressesAreDistinctAndInsideThePlan(t *testing.T) {
	t.Parallel()
	plan := slot(7)
	rapid.Check(t, func(t *rapid.T) {
		a := newAddresses(plan)
		held := map[netip.Addr]bool{}
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				ip, err := a.take()
				if err != nil {
					if len(held) < 1<<10-3 {
						t.Fatalf("no address although only %d are held", len(held))
					}
					t.Skip()
				}
				if held[ip] || ip == plan.Gateway() || !plan.Pods.Contains(ip) || !plan.Pods.Contains(ip.Next()) {
					t.Fatalf("got %s, which is taken or is none for a Pod", ip)
				}
				held[ip] = true
			},
			"release": func(t *rapid.T) {
				for ip := range held {
					a.release(ip)
					delete(held, ip)
					return
				}
				t.Skip()
			},
			"restart": func(t *rapid.T) {
				a = newAddresses(plan)
				for ip := range held {
					a.claim(ip)
				}
			},
		})
	})
}

func TestAddressesRunOut(t *testing.T) {
	t.Parallel()
	a := newAddresses(slot(3))
	for i := range 1<<10 - 3 {
		if _, err := a.take(); err != nil {
			t.Fatalf("address %d: %v", i, err)
		}
	}
	if ip, err := a.take(); err == nil {
		t.Errorf("got %s beyond the last address", ip)
	}
}

func TestLoopbackPodsShareAPort(t *testing.T) {
	t.Parallel()
	cfg := Default(newPlanOf(t))
	cfg.Mode = Loopback
	n, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if !n.(*loopback).many {
		t.Skip("this system answers on 127.0.0.1 alone")
	}
	var port int
	for _, uid := range []string{"a", "b"} {
		s, err := n.Acquire(t.Context(), uid, false)
		if err != nil {
			t.Fatal(err)
		}
		if !s.Bind.IsLoopback() || s.IP.IsLoopback() || n.Dialable(s.IP) != s.Bind || s.NetnsPath != "" {
			t.Errorf("Pod %s got %+v", uid, s)
		}
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", s.Bind, port))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		port = l.Addr().(*net.TCPAddr).Port
		go func() {
			if c, err := l.Accept(); err == nil {
				fmt.Fprint(c, "Pod "+uid)
				c.Close()
			}
		}()
	}
	for _, uid := range []string{"a", "b"} {
		c, err := n.Dial(t.Context(), uid, uint16(port))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(c)
		c.Close()
		if err != nil || string(got) != "Pod "+uid {
			t.Errorf("Pod %s says %q, %v", uid, got, err)
		}
	}
}

func TestLoopbackRestore(t *testing.T) {
	t.Parallel()
	plan := newPlanOf(t)
	first := newLoopback(plan)
	used := map[string]Sandbox{}
	for _, uid := range []string{"a", "b", "h"} {
		s, err := first.Acquire(t.Context(), uid, uid == "h")
		if err != nil {
			t.Fatal(err)
		}
		used[uid] = s
	}
	second := newLoopback(plan)
	if err := second.Restore(used); err != nil {
		t.Fatal(err)
	}
	taken := map[netip.Addr]bool{}
	for uid, want := range used {
		got, err := second.Acquire(t.Context(), uid, uid == "h")
		if err != nil || got != want {
			t.Errorf("Pod %s got %+v, %v, want %+v", uid, got, err, want)
		}
		taken[want.IP] = true
	}
	if s, err := second.Acquire(t.Context(), "new", false); err != nil || taken[s.IP] {
		t.Errorf("a new Pod got %s, %v", s.IP, err)
	}
}

func TestConfigErrors(t *testing.T) {
	t.Parallel()
	plan := slot(1)
	plan.ID = "abcdef"
	tests := []struct {
		reason string
		cfg    Config
		want   string
	}{
		{"no plan", Config{}, "PlanFor"},
		{"unknown mode", Config{Plan: plan, Mode: "Magic"}, "Magic"},
		{"spare out of range", Config{Plan: plan, Spare: -1}, "0 to 100"},
	}
	for _, tt := range tests {
		if _, err := New(tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want it to say %q", tt.reason, err, tt.want)
		}
	}
}

func newPlanOf(t *testing.T) Plan {
	t.Helper()
	plan, err := PlanFor(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// eventually waits for a condition that the kernel brings about by itself.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
