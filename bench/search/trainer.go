// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"diwan.dev/diwan/bench/search/peer"
)

// trainer trains models in Python processes, and remembers losses in a file:
// the same model with the same values is trained once.
type trainer struct {
	program string // models.py
	path    string // of what is remembered
	python  func(ctx context.Context) (string, error)

	mu    sync.Mutex
	known map[string]float64
	idle  []*peer.Process
}

type training struct {
	Model  string            `json:"model"`
	Seed   int               `json:"seed"`
	Values map[string]string `json:"values"`
}

type trained struct {
	Key   string  `json:"key"`
	Value float64 `json:"value"`
}

// evaluate is a [problem.Evaluator].
func (t *trainer) evaluate(ctx context.Context, model string, seed int, values map[string]string) (float64, error) {
	request := training{model, seed, values}
	key, err := json.Marshal(request) // the keys of a map are sorted
	if err != nil {
		return 0, err
	}
	value, ok, err := t.recall(string(key))
	if err != nil || ok {
		return value, err
	}
	process, err := t.borrow(ctx)
	if err != nil {
		return 0, err
	}
	var reply trained
	if err := process.Call(ctx, request, &reply); err != nil {
		_ = process.Close()
		return 0, fmt.Errorf("cannot train %s: %w", key, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle = append(t.idle, process)
	t.known[string(key)] = reply.Value
	return reply.Value, t.remember(trained{string(key), reply.Value})
}

// recall looks a loss up, and reads the file first of all.
func (t *trainer) recall(key string) (float64, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[string]float64{}
		file, err := os.Open(t.path)
		if err != nil && !os.IsNotExist(err) {
			return 0, false, err
		}
		if err == nil {
			defer file.Close()
			for lines := bufio.NewScanner(file); lines.Scan(); {
				var r trained
				if json.Unmarshal(lines.Bytes(), &r) == nil { // the last line may be cut off
					t.known[r.Key] = r.Value
				}
			}
		}
	}
	value, ok := t.known[key]
	return value, ok, nil
}

func (t *trainer) remember(r trained) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(t.path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(t.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

// borrow returns an idle process, or a new one.
func (t *trainer) borrow(ctx context.Context) (*peer.Process, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.idle); n > 0 {
		process := t.idle[n-1]
		t.idle = t.idle[:n-1]
		return process, nil
	}
	python, err := t.python(ctx)
	if err != nil {
		return nil, err
	}
	return peer.Start(ctx, python, t.program)
}

// close ends the processes.
func (t *trainer) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, process := range t.idle {
		_ = process.Close()
	}
	t.idle = nil
}
