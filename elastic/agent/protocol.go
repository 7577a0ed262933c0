// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"encoding/json"
	"fmt"

	"diwan.dev/diwan/elastic"
)

// A Request is a line that a worker, or someone who watches, sends to the agent. One field is set.
type Request struct {
	// Join makes the worker a member.
	Join *Join `json:"join,omitempty"`
	// Watch asks for states, without being a member.
	Watch bool `json:"watch,omitempty"`
	// Alive is a heartbeat of the worker. Any request counts as one; this one does
	// nothing else.
	Alive bool `json:"alive,omitempty"`
	// Broken says that the group of a view does not work any more. It asks for another view.
	Broken *ViewName `json:"broken,omitempty"`
	// Leave says that the worker has finished.
	Leave bool `json:"leave,omitempty"`
}

// Join is a worker's description of itself.
type Join struct {
	// Address is where the others reach it, HOST:PORT.
	Address string `json:"address"`
	// Slots is how many processes it trains with; 0 means one.
	Slots int `json:"slots,omitempty"`
}

// ViewName names a view.
type ViewName struct {
	History string `json:"history"`
	Number  uint64 `json:"number"`
}

// A Reply is a line that the agent sends. One field is set.
type Reply struct {
	// Member is the worker as others see it. It is the first reply to Join.
	Member *elastic.Member `json:"member,omitempty"`
	// State is sent whenever it changes.
	State *State `json:"state,omitempty"`
	// Error says why a request is rejected; the connection ends.
	Error string `json:"error,omitempty"`
}

// State tells a worker whether and with whom to train.
type State struct {
	// View is the latest view, of number 0 where there is none yet.
	View elastic.View `json:"view"`
	// Rank is the worker's in the view, -1 if it is not in it.
	Rank int `json:"rank"`
	// Ready reports whether to train: the worker is in the view, and there are enough members. Waiting
	// says why not.
	Ready   bool   `json:"ready"`
	Waiting string `json:"waiting,omitempty"`
}

// maxLine is the longest line that is read from a worker, in bytes.
const maxLine = 64 << 10

// ParseRequest reads a line.
func ParseRequest(line []byte) (Request, error) {
	var r Request
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return r, fmt.Errorf("cannot read the request: %w", err)
	}
	set := 0
	for _, is := range []bool{r.Join != nil, r.Watch, r.Alive, r.Broken != nil, r.Leave} {
		if is {
			set++
		}
	}
	if set != 1 {
		return r, fmt.Errorf("cannot read the request: it has %d fields, must have one of join, watch, alive, broken, leave", set)
	}
	if r.Join != nil {
		if host, port, err := splitAddress(r.Join.Address); err != nil || host == "" || port == 0 {
			return r, fmt.Errorf("cannot join: address %.60q must be HOST:PORT where other workers reach this one", r.Join.Address)
		}
		if r.Join.Slots < 0 || r.Join.Slots > 1<<20 {
			return r, fmt.Errorf("cannot join: %d slots", r.Join.Slots)
		}
	}
	return r, nil
}
