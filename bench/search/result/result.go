// SPDX-License-Identifier: Apache-2.0

// Package result keeps what the runs of the search benchmark found.
//
// A [Run] is one search: an optimizer on a problem with a seed. Runs are stored
// as JSON lines, appended as they end, so that a benchmark that was interrupted
// resumes where it was.
package result

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
)

// Key says which search a run was.
type Key struct {
	Problem   string `json:"problem"`
	Optimiser string `json:"optimiser"` // library/sampler
	Seed      uint64 `json:"seed"`
	Parallel  int    `json:"parallel"` // how many points were pending at any time
}

// Run is one search and what it found.
type Run struct {
	Key
	Trials int `json:"trials"` // how many were to be told
	Told   int `json:"told"`   // how many were
	// Steps are the trials after which another point was the best observed,
	// counted from 1, with that point's distance from the optimum without
	// noise; with its value where the optimum is not known.
	Steps []Step `json:"steps"`
	// Duplicates counts points that were suggested while they were pending.
	Duplicates int `json:"duplicates,omitempty"`
	// Seconds were spent on asking and telling: CPU time of a peer, time
	// by the clock of ours.
	Seconds float64 `json:"seconds"`
	// Ended says why fewer trials were told than were to be.
	Ended string `json:"ended,omitempty"`
}

// Step is a trial and what is best from it on.
type Step struct {
	Trial int
	Value float64
}

// MarshalJSON writes a step as a pair; six digits tell results apart.
func (s Step) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "[%d,%.6g]", s.Trial, s.Value), nil
}

// UnmarshalJSON reads a pair.
func (s *Step) UnmarshalJSON(text []byte) error {
	var pair [2]float64
	err := json.Unmarshal(text, &pair)
	s.Trial, s.Value = int(pair[0]), pair[1]
	return err
}

// Best returns what was best after a number of trials, +Inf before the first.
// After the end of a run it stays what it was.
func (r Run) Best(trials int) float64 {
	best := math.Inf(1)
	for _, s := range r.Steps {
		if s.Trial > trials {
			break
		}
		best = s.Value
	}
	return best
}

// Store is a file of runs. It may be used by several goroutines at once.
type Store struct {
	mu   sync.Mutex
	path string
	runs []Run
	at   map[Key]int
}

// Open reads a store; a file that is not there is an empty one, and the path
// "" is a store in memory.
func Open(path string) (*Store, error) {
	s := &Store{path: path, at: map[Key]int{}}
	if path == "" {
		return s, nil
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	} else if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		var r Run
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("cannot read line %d of %s: %w", n, path, err)
		}
		s.put(r)
	}
	return s, lines.Err()
}

func (s *Store) put(r Run) {
	if i, ok := s.at[r.Key]; ok {
		s.runs[i] = r
		return
	}
	s.at[r.Key] = len(s.runs)
	s.runs = append(s.runs, r)
}

// Has reports whether there is a run with a key of at least so many trials.
func (s *Store) Has(k Key, trials int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.at[k]
	return ok && s.runs[i].Trials >= trials
}

// Add appends a run; one with the same key counts no more.
func (s *Store) Add(r Run) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(r)
	if s.path == "" {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(s.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// Runs returns a copy of all runs.
func (s *Store) Runs() []Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Run(nil), s.runs...)
}
