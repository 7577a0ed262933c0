// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestDefault(t *testing.T) {
	t.Parallel()
	want := "CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER CAP_FSETID CAP_KILL CAP_SETGID CAP_SETUID CAP_SETPCAP CAP_NET_BIND_SERVICE " +
		"CAP_NET_RAW CAP_SYS_CHROOT CAP_MKNOD CAP_AUDIT_WRITE CAP_SETFCAP"
	if diff := cmp.Diff(want, Default().String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, want := Default(), Set(0xa80425fb); got != want { // CapEff of a container of Docker's or containerd's
		t.Errorf("got %#x, want %#x", uint64(got), uint64(want))
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason    string
		add, drop []string
		want      string
	}{
		{"nothing", nil, nil, Default().String()},
		{"one more", []string{"SYS_TIME"}, []string{"ALL"}, "CAP_SYS_TIME"},
		{"with the prefix, and in any case", []string{"CAP_SYS_TIME", "cap_bpf", "syslog"}, []string{"all"}, "CAP_SYS_TIME CAP_SYSLOG CAP_BPF"},
		{"all dropped", nil, []string{"ALL"}, "none"},
		{"all added, one dropped", []string{"ALL"}, []string{"CHOWN"}, All.Without(1).String()},
		{"all added, all dropped", []string{"ALL"}, []string{"ALL"}, "none"},
		{"all added, all dropped, one added", []string{"ALL", "KILL"}, []string{"ALL"}, "CAP_KILL"},
		{"one of the default dropped", nil, []string{"NET_RAW"}, Default().Without(1 << 13).String()},
		{"one added and dropped", []string{"SYS_ADMIN"}, []string{"ALL", "SYS_ADMIN"}, "none"},
	} {
		if got, err := Default().Apply(tt.add, tt.drop); err != nil || got.String() != tt.want {
			t.Errorf("%s: got %v, %v, want %s", tt.reason, got, err, tt.want)
		}
	}
	for _, tt := range []struct {
		reason    string
		add, drop []string
		want      string
	}{
		{"an unknown name", []string{"KILL", "ROOT"}, nil, `securityContext.capabilities.add[1] is "ROOT", which is no capability`},
		{"an unknown name to drop", nil, []string{"NET_WAR"}, `securityContext.capabilities.drop[0] is "NET_WAR"`},
		{"nothing", nil, []string{""}, `securityContext.capabilities.drop[0] is ""`},
		{"only the prefix", []string{"CAP_"}, nil, `securityContext.capabilities.add[0] is "CAP_"`},
		{"the prefix twice", []string{"CAP_CAP_KILL"}, nil, `securityContext.capabilities.add[0] is "CAP_CAP_KILL"`},
		{"ALL is none, and has no prefix", nil, []string{"CAP_ALL"}, `securityContext.capabilities.drop[0] is "CAP_ALL"`},
		{"one of a list's", []string{"KILL,CHOWN"}, nil, `securityContext.capabilities.add[0] is "KILL,CHOWN"`},
	} {
		if got, err := Default().Apply(tt.add, tt.drop); err == nil || !strings.Contains(err.Error(), tt.want) || got != 0 {
			t.Errorf("%s: got %v, %v, want %q", tt.reason, got, err, tt.want)
		}
	}
}

// TestApplyInOrder holds Apply to what a CRI runtime does with one list entry after the other.
func TestApplyInOrder(t *testing.T) {
	t.Parallel()
	lists := rapid.SliceOfN(rapid.SampledFrom([]string{"ALL", "all", "CHOWN", "CAP_CHOWN", "SYS_ADMIN", "cap_sys_admin", "BPF", "KILL", "NET_RAW"}), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		add, drop := lists.Draw(t, "add"), lists.Draw(t, "drop")
		want := map[string]bool{}
		for _, name := range Default().Names() {
			want[name] = true
		}
		each := func(list []string, all bool, has bool) {
			for _, name := range list {
				name = strings.TrimPrefix(strings.ToUpper(name), "CAP_")
				switch {
				case name == "ALL" && all:
					for _, n := range names {
						want["CAP_"+n] = has
					}
				case name != "ALL" && !all:
					want["CAP_"+name] = has
				}
			}
		}
		each(add, true, true)
		each(drop, true, false)
		each(add, false, true)
		each(drop, false, false)
		got, err := Default().Apply(add, drop)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range All.Names() {
			one, _ := byName(name)
			if got.Has(one) != want[name] {
				t.Fatalf("%s: got %v, want %v", name, got.Has(one), want[name])
			}
		}
	})
}

// TestForms turns sets into what the kernel and people take, and back.
func TestForms(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := Set(rapid.Uint64().Draw(t, "set"))
		words := s.Words()
		if back := Set(words[0]) | Set(words[1])<<32; back != s {
			t.Fatalf("words %#x of %#x", words, uint64(s))
		}
		var fromBits Set
		last := -1
		for _, bit := range s.Bits() {
			if bit <= last || bit > 63 {
				t.Fatalf("bits %v", s.Bits())
			}
			fromBits |= 1 << bit
			last = bit
		}
		if fromBits != s {
			t.Fatalf("bits %v of %#x", s.Bits(), uint64(s))
		}
		back, err := Set(0).Apply(s.Names(), nil)
		if err != nil || back != s.Intersect(All) {
			t.Fatalf("names %v of %#x: %v", s.Names(), uint64(s), err)
		}
	})
}
