// SPDX-License-Identifier: Apache-2.0

package study

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"diwan.dev/diwan/bench/search/peer"
	"diwan.dev/diwan/bench/search/problem"
)

// Peer is an optimizer in a Python process, whose program answers the
// operations start, ask, tell and load (see peers/protocol.py). The process
// begins with the first search, and again after one that it did not survive.
type Peer struct {
	// Python is the interpreter, Arguments the program and what it is given.
	Python    string
	Arguments []string

	process *peer.Process
}

// Load is what a peer's operation load took.
type Load struct {
	// CPU is the CPU time, Bytes the memory for all points.
	CPU   time.Duration
	Bytes int64
}

type request struct {
	Op         string              `json:"op"`
	Parameters []problem.Parameter `json:"parameters,omitempty"`
	Seed       uint64              `json:"seed"`
	Trials     int                 `json:"trials"`
	Parallel   int                 `json:"parallel"`
	Index      int                 `json:"index"`
	Value      float64             `json:"value"`
	Count      int                 `json:"count,omitempty"`
}

type reply struct {
	Point map[string]any `json:"point"`
	CPU   float64        `json:"cpu"` // seconds
	Bytes int64          `json:"bytes"`
}

// Begin begins a search in the process.
func (o *Peer) Begin(ctx context.Context, p *problem.Problem, s Setup) (Session, error) {
	if o.process == nil {
		process, err := peer.Start(context.WithoutCancel(ctx), o.Python, o.Arguments...)
		if err != nil {
			return nil, err
		}
		o.process = process
	}
	session := &PeerSession{optimiser: o, problem: p}
	// Importing some libraries takes long on a busy machine.
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	_, err := session.call(ctx, request{Op: "start", Parameters: p.Parameters, Seed: s.Seed, Trials: s.Trials, Parallel: s.Parallel})
	return session, err
}

// Close ends the process.
func (o *Peer) Close() error {
	if o.process == nil {
		return nil
	}
	p := o.process
	o.process = nil
	return p.Close()
}

// PeerSession is a search of a peer.
type PeerSession struct {
	optimiser *Peer
	problem   *problem.Problem
	cpu       time.Duration
}

// Ask asks the peer for a point.
func (s *PeerSession) Ask(ctx context.Context) (problem.Point, error) {
	r, err := s.call(ctx, request{Op: "ask"})
	if err != nil {
		return problem.Point{}, err
	}
	texts := map[string]string{}
	for name, value := range r.Point {
		switch v := value.(type) {
		case string:
			texts[name] = v
		default:
			text, err := json.Marshal(v)
			if err != nil {
				return problem.Point{}, err
			}
			texts[name] = string(text)
		}
	}
	return s.problem.Read(texts)
}

// Tell tells the peer a value.
func (s *PeerSession) Tell(ctx context.Context, index int, value float64) error {
	_, err := s.call(ctx, request{Op: "tell", Index: index, Value: value})
	return err
}

// Load has the peer take in so many random points at once.
func (s *PeerSession) Load(ctx context.Context, count int) (Load, error) {
	r, err := s.call(ctx, request{Op: "load", Count: count})
	return Load{CPU: time.Duration(r.CPU * 1e9), Bytes: r.Bytes}, err
}

// Spent returns the CPU time of all operations so far.
func (s *PeerSession) Spent() time.Duration { return s.cpu }

func (s *PeerSession) call(ctx context.Context, q request) (reply, error) {
	if s.optimiser.process == nil {
		return reply{}, fmt.Errorf("cannot %s: process has ended", q.Op)
	}
	var r reply
	err := s.optimiser.process.Call(ctx, q, &r)
	s.cpu += time.Duration(r.CPU * 1e9)
	if errors.Is(err, peer.ErrEnded) {
		_ = s.optimiser.Close() // the next search starts another
	}
	return r, err
}
