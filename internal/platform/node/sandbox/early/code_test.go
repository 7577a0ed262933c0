// SPDX-License-Identifier: Apache-2.0

package early

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCode(t *testing.T) {
	t.Parallel()
	full := Job{
		Join: 7, JoinBegan: 1 << 40, Among: 8, AmongBegan: 1 << 41, AmongUser: true, Idle: true, Args: []string{"a", "", "b:c\n\x00"}, Env: []string{"A=1"}, Dir: "/", UID: 1<<32 - 1, GID: 3, Groups: []uint32{4, 5}, Userns: true,
		Capabilities: 1<<63 | 1, NoNewPrivileges: true, Seccomp: []byte{0, 255, ':'}, SeccompFlags: 4, Direct: true, TTY: true, InGroup: true,
		Tasks: []string{"t"}, Layers: []string{"/a", "/b"}, Scratch: "/s", ReadOnly: true, Privileged: true, Masked: []string{"m"}, Fixed: []string{"f"},
		Mounts: []Mount{{"s", "t", true, false, "b", nil}, {"u", "v", false, true, "", []string{"l", "m"}}}, Hostname: "h", Netns: "n", Sysctls: []string{"a", "b"}, Kept: true,
	}
	for _, want := range []Job{{}, full} {
		var got Job
		if err := got.Decode(want.Encode()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	want := Result{PID: 12, Mounts: "mnt:[1]", Error: "cannot", Code: 127}
	var got Result
	if err := got.Decode(want.Encode()); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(nil))
	f.Add((&Job{Args: []string{"a"}}).Encode())
	f.Add([]byte("0:9999999999:"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var job Job
		if job.Decode(text) != nil {
			return
		}
		var again Job
		if err := again.Decode(job.Encode()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(job, again); diff != "" {
			t.Errorf("(-first +second):\n%s", diff)
		}
	})
}
