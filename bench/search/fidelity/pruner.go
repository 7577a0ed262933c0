// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"context"
	"encoding/json"

	"diwan.dev/diwan/bench/search/peer"
	"diwan.dev/diwan/bench/search/problem"
)

// Pruned is a search of a Python program that answers the operations start,
// ask, report, tell and stop; see peers/optuna_pruner_peer.py.
func Pruned(name, python string, arguments ...string) Search {
	return Search{name, func(ctx context.Context, f Family, seed uint64, l *ledger) (err error) {
		process, err := peer.Start(ctx, python, arguments...)
		if err != nil {
			return err
		}
		defer process.Close()
		call := func(r prunerRequest) (reply prunerReply, err error) {
			err = process.Call(ctx, r, &reply)
			return reply, err
		}
		p := &problem.Problem{Parameters: f.Parameters}
		if _, err := call(prunerRequest{Op: "start", Parameters: f.Parameters, Seed: seed, Trials: l.budget, Parallel: 1}); err != nil {
			return err
		}
		for index := 0; !l.full(); index++ {
			asked, err := call(prunerRequest{Op: "ask"})
			if err != nil {
				return err
			}
			point, err := p.Read(texts(asked.Point))
			if err != nil {
				return err
			}
			observed, stopped, err := train(l, f.Begin(point.At, seed), func(epoch int, observed float64) (bool, error) {
				r, err := call(prunerRequest{Op: "report", Index: index, Step: epoch, Value: observed})
				return r.Stop, err
			})
			if err != nil {
				return err
			}
			end := prunerRequest{Op: "tell", Index: index, Value: observed}
			if stopped {
				end.Op = "stop"
			}
			if _, err := call(end); err != nil {
				return err
			}
		}
		return nil
	}}
}

type prunerRequest struct {
	Op         string              `json:"op"`
	Parameters []problem.Parameter `json:"parameters,omitempty"`
	Seed       uint64              `json:"seed"`
	Trials     int                 `json:"trials"`
	Parallel   int                 `json:"parallel"`
	Index      int                 `json:"index"`
	Step       int                 `json:"step"`
	Value      float64             `json:"value"`
}

type prunerReply struct {
	Point map[string]json.RawMessage `json:"point"`
	Stop  bool                       `json:"stop"`
}

// texts returns JSON values as texts.
func texts(values map[string]json.RawMessage) map[string]string {
	texts := map[string]string{}
	for name, raw := range values {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		texts[name] = text
	}
	return texts
}
