// SPDX-License-Identifier: Apache-2.0

package agreement

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"diwan.dev/diwan/elastic"
)

// A Kind is the type of a message.
type Kind string

// The kinds of messages.
const (
	// Hello announces its sender's view; a receiver with a later one answers with
	// Learn.
	Hello Kind = "hello"
	// Learn brings a view that has been decided on.
	Learn Kind = "learn"
	// Renew asks for a view to follow the sender's.
	Renew Kind = "renew"
	// Prepare asks to take part in the view of a number, and for the vote of the view before.
	Prepare Kind = "prepare"
	// Promise answers Prepare.
	Promise Kind = "promise"
	// Refuse answers Prepare with the ballot that has been promised instead.
	Refuse Kind = "refuse"
	// Accept asks to accept a view.
	Accept Kind = "accept"
	// Accepted answers Accept.
	Accepted Kind = "accepted"
)

// A Ballot is one attempt to have a view decided on. Later rounds go before earlier ones.
type Ballot struct {
	Round    uint64 `json:"round,omitempty"`
	Proposer string `json:"proposer,omitempty"`
}

func (b Ballot) compare(c Ballot) int {
	return cmp.Or(cmp.Compare(b.Round, c.Round), cmp.Compare(b.Proposer, c.Proposer))
}

// A Message goes from one member to another.
type Message struct {
	Kind Kind `json:"kind"`
	// From is the sender; To is the ID of the receiver.
	From elastic.Member `json:"from"`
	To   string         `json:"to"`
	// History and Number are those of the view that the sender has.
	History string `json:"history,omitempty"`
	Number  uint64 `json:"number,omitempty"`
	// Ballot is what Prepare, Promise, Refuse, Accept and Accepted are about.
	Ballot Ballot `json:"ballot,omitzero"`
	// View is the view that Learn announces, Accept proposes, and a Promise reports as accepted in
	// the ballot AcceptedIn.
	View       elastic.View `json:"view,omitzero"`
	AcceptedIn Ballot       `json:"acceptedIn,omitzero"`
	// Leaving is set while the sender takes leave.
	Leaving bool `json:"leaving,omitempty"`
}

// Encode returns a message as it is sent, in JSON.
func Encode(m Message) []byte {
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // of texts and numbers alone
	}
	return data
}

// MaxSize is the longest message that is read, in bytes.
const MaxSize = 4 << 20

// Decode reads a message that came from elsewhere.
func Decode(data []byte) (Message, error) {
	var m Message
	if len(data) > MaxSize {
		return m, fmt.Errorf("cannot read a message: %d bytes, more than %d", len(data), MaxSize)
	}
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&m); err != nil {
		return m, fmt.Errorf("cannot read a message: %w", err)
	}
	if err := m.validate(); err != nil {
		return m, fmt.Errorf("cannot read a message of kind %.20q: %w", m.Kind, err)
	}
	return m, nil
}

func (m Message) validate() error {
	switch m.Kind {
	case Hello, Renew, Prepare, Refuse, Accepted:
	case Promise:
		if (m.View.Number == 0) != (m.AcceptedIn == Ballot{}) {
			return fmt.Errorf("a view without a ballot, or a ballot without a view")
		}
	case Learn, Accept:
		if m.View.Number == 0 {
			return fmt.Errorf("no view")
		}
	default:
		return fmt.Errorf("unknown")
	}
	if max(m.Ballot.Round, m.AcceptedIn.Round, m.Number, m.View.Number) > 1<<62 {
		return fmt.Errorf("a count that no history can reach")
	}
	if err := m.From.Validate(); err != nil {
		return err
	}
	return m.View.Validate()
}
