// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/elastic"
)

// FuzzDecode has a node take whatever can be read.
func FuzzDecode(f *testing.F) {
	a, b := elastic.Member{ID: "a", Name: "a"}, elastic.Member{ID: "b", Name: "b"}
	view := elastic.View{History: "a", Number: 2, Members: []elastic.Member{a, b}}
	for _, kind := range []Kind{Hello, Learn, Renew, Prepare, Promise, Refuse, Accept, Accepted} {
		f.Add(Encode(Message{Kind: kind, From: b, To: "a", History: "a", Number: 1, Ballot: Ballot{Round: 3, Proposer: "b"}, View: view, AcceptedIn: Ballot{Round: 1, Proposer: "b"}}))
	}
	f.Add([]byte(`{"kind":"learn","from":{"id":"b"},"to":"a","view":{"number":9,"members":[{"id":"x"},{"id":"x"}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode(data)
		if err != nil {
			return
		}
		again, err := Decode(Encode(m))
		if err != nil {
			t.Fatalf("%s was read, and what was written of it was not: %v", data, err)
		}
		if diff := cmp.Diff(m, again); diff != "" {
			t.Fatal(diff)
		}
		config := DefaultConfig(a)
		config.Found, config.FoundAfter = true, 0
		now := time.Unix(0, 0)
		n := New(config, now)
		n.Tick(now)
		n.Alive([]elastic.Member{a, b}, now)
		n.Tick(now.Add(time.Second))
		m.To = a.ID
		n.Receive(m, now.Add(time.Second))
		n.Tick(now.Add(2 * time.Second))
		if err := n.View().Validate(); err != nil {
			t.Fatal(err)
		}
	})
}
