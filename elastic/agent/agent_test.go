// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"diwan.dev/diwan/elastic"
)

func TestWorkersComeAndGo(t *testing.T) {
	t.Parallel()
	x := newTeam(t, nil)
	x.start("w0")
	x.start("w1")
	x.start("w2")
	state := x.awaitNames("w0 w1 w2")
	if !state.Ready || len(state.View.Members) != 3 {
		t.Errorf("the state of a whole team is %+v", state)
	}

	x.peers["w1"].say(`{"leave":true}`)
	state = x.awaitNames("w0 w2")
	if len(state.View.Left) != 1 || !strings.HasPrefix(state.View.Left[0], "w1.") {
		t.Errorf("w1 left, and %v are named", state.View.Left)
	}
	x.peers["w1"].join() // the same agent serves the next worker
	x.awaitNames("w0 w1 w2")

	x.peers["w2"].worker.Close() // the worker is killed; its agent lives
	x.awaitNames("w0 w1")

	view := x.peers["w0"].state.View
	x.peers["w1"].say(`{"broken":{"history":%q,"number":%d}}`, view.History, view.Number)
	for _, name := range []string{"w0", "w1"} {
		x.peers[name].await("the view is renewed", func(s State) bool { return s.View.Number > view.Number && s.Ready })
	}
}

func TestAgentsAreKilledAndStopped(t *testing.T) {
	t.Parallel()
	x := newTeam(t, nil)
	for _, name := range strings.Fields("w0 w1 w2 w3") {
		x.start(name)
	}
	x.awaitNames("w0 w1 w2 w3")

	x.peers["w0"].process.Process.Kill() // who founded is not special
	x.awaitNames("w1 w2 w3")

	x.peers["w2"].process.Process.Signal(syscall.SIGSTOP)
	view := x.peers["w1"].state.View
	x.peers["w1"].say(`{"broken":{"history":%q,"number":%d}}`, view.History, view.Number) // its group hangs
	state := x.awaitNames("w1 w3")
	if len(state.View.Lost) != 1 || !strings.HasPrefix(state.View.Lost[0], "w2.") {
		t.Errorf("w2 was stopped, and %v are named lost", state.View.Lost)
	}
	x.peers["w2"].process.Process.Signal(syscall.SIGCONT)
	x.awaitNames("w1 w2 w3")
}

// TestRollCall has one of two left, which goes on once the other is known to be dead.
func TestRollCall(t *testing.T) {
	t.Parallel()
	roll := filepath.Join(t.TempDir(), "roll")
	x := newTeam(t, func(o *agentOptions) { o.Roll = roll })
	x.start("w0")
	x.start("w1")
	before := x.awaitNames("w0 w1").View
	x.peers["w0"].process.Process.Kill()
	x.peers["w1"].await("it has no quorum", func(s State) bool { return s.Waiting != "" })
	if err := os.WriteFile(roll, []byte("127.0.0.1"), 0o600); err != nil {
		t.Fatal(err)
	}
	state := x.awaitNames("w1")
	if state.View.History == before.History {
		t.Errorf("view %+v is of the same history as one that others may have decided on", state.View)
	}
}

func TestMinimum(t *testing.T) {
	t.Parallel()
	x := newTeam(t, func(o *agentOptions) { o.Minimum = 2; o.Key = []byte("0123456789abcdef") })
	x.start("w0")
	state := x.peers["w0"].await("one is waiting", func(s State) bool { return s.View.Number > 0 })
	if state.Ready || state.Waiting != "1 of at least 2 members" {
		t.Errorf("one of two is told %+v", state)
	}
	x.start("w1")
	x.peers["w0"].await("two are ready", func(s State) bool { return s.Ready && len(s.View.Members) == 2 })
}

func TestSilentWorkerIsTakenOut(t *testing.T) {
	t.Parallel()
	x := newTeam(t, func(o *agentOptions) {
		if o.Name == "w1" {
			o.WorkerTimeout = 500 * time.Millisecond
		}
	})
	x.start("w0")
	x.start("w1")
	x.peers["w0"].await("w1 came and was taken out", func(s State) bool {
		return len(s.View.Left) == 1 && strings.HasPrefix(s.View.Left[0], "w1.")
	})
	for r := range x.peers["w1"].replies {
		if r.Error != "" {
			t.Errorf("it is told %q, and would not join anew when it comes back", r.Error)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	x := newTeam(t, nil)
	p := x.start("w0")
	p.await("it is ready", func(s State) bool { return s.Ready })
	for _, c := range []struct{ line, want, reason string }{
		{`{"join":{"address":"127.0.0.1:1"}}`, "another worker is attached", "one worker an agent"},
		{`{"join":{"address":"127.0.0.1"}}`, "must be HOST:PORT", "an address is needed"},
		{`{"alive":true}`, "first request must be join or watch", "who speaks is unknown"},
		{`{`, "cannot read the request", "not JSON"},
		{`{"alive":true,"leave":true}`, "it has 2 fields", "one thing a line"},
		{`{"jion":{}}`, "unknown field", "a typing error"},
		{strings.Repeat(" ", 2*maxLine), "too long", "a line without end"},
	} {
		reader := bufio.NewReader(p.dial(c.line))
		var r Reply
		if err := json.NewDecoder(reader).Decode(&r); err != nil || !strings.Contains(r.Error, c.want) {
			t.Errorf("%s: %.40s is answered by %+v, %v; want an error with %q", c.reason, c.line, r, err, c.want)
		}
	}
	watcher := json.NewDecoder(p.dial(`{"watch":true}`))
	var r Reply
	if err := watcher.Decode(&r); err != nil || r.State == nil || len(r.State.View.Members) != 1 {
		t.Errorf("who watches is told %+v, %v", r, err)
	}
	p.say(`{"alive":true}`)
	if _, err := Listen(Config{Name: "x"}); err == nil {
		t.Error("a configuration without a job is taken")
	}
}

func TestStateOf(t *testing.T) {
	t.Parallel()
	view := elastic.View{Number: 3, Members: []elastic.Member{{ID: "a"}, {ID: "b"}}}
	for _, c := range []struct {
		view    elastic.View
		id      string
		minimum int
		blocked bool
		want    string
	}{
		{elastic.View{}, "a", 1, false, "no view yet"},
		{view, "c", 1, false, "not in the view: joining, or standing by"},
		{view, "b", 3, false, "2 of at least 3 members"},
		{view, "b", 2, true, "most members of the view are gone: no quorum"},
		{view, "b", 2, false, ""},
	} {
		got := stateOf(c.view, c.id, c.minimum, c.blocked)
		if got.Waiting != c.want || got.Ready != (c.want == "") {
			t.Errorf("stateOf(%v, %s, %d, %v) = %+v, want to wait for %q", c.view, c.id, c.minimum, c.blocked, got, c.want)
		}
	}
}

func FuzzParseRequest(f *testing.F) {
	for _, line := range []string{
		`{"join":{"address":"10.0.0.7:4321","slots":2}}`, `{"watch":true}`, `{"alive":true}`, `{"broken":{"history":"a","number":4}}`, `{"leave":true}`, `{}`, `null`, `{"join":null}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := ParseRequest(line)
		if err != nil {
			return
		}
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseRequest(data)
		if err != nil {
			t.Fatalf("%s was read and %s was not: %v", line, data, err)
		}
		if a, _ := json.Marshal(again); string(a) != string(data) {
			t.Fatalf("%s became %s", data, a)
		}
	})
}
