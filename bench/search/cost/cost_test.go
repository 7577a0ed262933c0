// SPDX-License-Identifier: Apache-2.0

package cost_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"diwan.dev/diwan/bench/search/analysis"
	"diwan.dev/diwan/bench/search/cost"
	"diwan.dev/diwan/bench/search/study"
)

// TestFigures measures random search of ours and of the peer that needs
// nothing but Python, and puts them side by side.
func TestFigures(t *testing.T) {
	t.Parallel()
	c := cost.Cell{Past: 20, Parameters: 5}
	ours, err := cost.Ours(t.Context(), "ours/random", study.Ours{Algorithm: "random"}, c, time.Minute)
	if err != nil || ours.Asks == 0 || ours.Over != "" {
		t.Fatalf("figure %+v, %v", ours, err)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	theirs, err := cost.Peer(t.Context(), "test/random", &study.Peer{Python: python, Arguments: []string{"../peers/random_peer.py"}}, c, time.Minute)
	if err != nil || theirs.Asks == 0 || theirs.Each == 0 || theirs.Over != "" {
		t.Fatalf("figure %+v, %v", theirs, err)
	}
	broken, err := cost.Peer(t.Context(), "test/broken", &study.Peer{Python: python, Arguments: []string{"-c", "raise Exception('none here')"}}, c, time.Minute)
	if err != nil || !strings.Contains(broken.Over, "none here") {
		t.Errorf("figure of a broken peer %+v, %v", broken, err)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	c, wide := cost.Cell{Past: 1000, Parameters: 5}, cost.Cell{Past: 10, Parameters: 100}
	text := cost.Table([]cost.Figure{
		{Optimiser: "ours/a", Cell: c, First: 2 * time.Millisecond, Each: time.Millisecond, Asks: 5, Bytes: 100},
		{Optimiser: "peer/a", Cell: c, First: 3 * time.Millisecond, Each: 40 * time.Millisecond, Asks: 5},
		{Optimiser: "ours/a", Cell: wide, First: time.Millisecond, Each: time.Millisecond, Asks: 5},
		{Optimiser: "peer/a", Cell: wide, First: time.Minute, Each: time.Minute, Over: "> 1m0s"},
		{Optimiser: "ours/b", Cell: c, Each: time.Microsecond, Asks: 5},
	}, []analysis.Twin{{Ours: "ours/a", Peer: "peer/a"}})
	for _, want := range []string{
		"| ours/a | peer/a | 1000 | 5 | 1 ms | 2 ms | 40 ms | 3 ms | 40 | 100 | – |",
		"| ours/a | peer/a | 10 | 100 | 1 ms | 1 ms | > 1m0s | 6e+04 ms | > 6e+04 | – | – |",
		"| ours/b |  | 1000 | 5 | 0.001 ms | – | – | – | – | – | – |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("table lacks %q:\n%s", want, text)
		}
	}
}
