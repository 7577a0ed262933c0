// SPDX-License-Identifier: Apache-2.0

// Package quickstart holds the first experiment that a user runs. It has no Go code of its own: its tests
// keep the training program and its data working.
package quickstart

import (
	"encoding/csv"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// epochLine is the form of what train.py prints, which the example's readers learn from.
var epochLine = regexp.MustCompile(`^epoch 1 loss=(\d+\.\d+) accuracy=(0\.\d+|1\.0+)\n$`)

func TestTrainOneEpoch(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	first := train(t, python)
	accuracy, err := strconv.ParseFloat(first[2], 64)
	if err != nil {
		t.Fatal(err)
	}
	if accuracy < 0.8 {
		t.Errorf("accuracy after one epoch is %v: the network does not learn", accuracy)
	}
	if again := train(t, python); again[0] != first[0] {
		t.Errorf("two runs with one seed differ: %q and %q", first[0], again[0])
	}
}

// train runs the program for one epoch and returns what it printed, its loss and its accuracy.
func train(t *testing.T, python string) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), python, "train.py", "--epochs=1", "--lr=0.1")
	var failure strings.Builder
	command.Stderr = &failure
	output, err := command.Output()
	if err != nil {
		t.Fatalf("train.py: %v\n%s", err, failure.String())
	}
	match := epochLine.FindStringSubmatch(string(output))
	if match == nil {
		t.Fatalf("train.py printed %q, want one line that matches %s", output, epochLine)
	}
	return match
}

func TestData(t *testing.T) {
	t.Parallel()
	file, err := os.Open("digits.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1797 {
		t.Errorf("digits.csv has %d rows, want the 1797 of the original", len(rows))
	}
	for i, row := range rows {
		if len(row) != 65 {
			t.Fatalf("row %d has %d cells, want 64 pixels and a label", i+1, len(row))
		}
		for j, cell := range row {
			highest := 16
			if j == 64 {
				highest = 9
			}
			if v, err := strconv.Atoi(cell); err != nil || v < 0 || v > highest {
				t.Fatalf("row %d, cell %d is %q, want an integer from 0 to %d", i+1, j+1, cell, highest)
			}
		}
	}
}
