// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"diwan.dev/diwan/bench/markdown"
)

// Trials beside Ray Tune. Ray keeps a Python process for each that runs at a
// time, so that 200 of them would need some 20 GB.
const (
	rayTrials   = 200
	rayParallel = 8
)

// measureRay runs the program of the load as trials of Diwan and of Ray Tune.
func measureRay(ctx context.Context) (string, error) {
	python := os.Getenv("RAY_PYTHON")
	if python == "" {
		return "", fmt.Errorf(`%w: name a Python that has Ray Tune in RAY_PYTHON; make one by: python3 -m venv ray && ray/bin/pip install "ray[tune]"`, errLacking)
	}
	s, end, err := newServer(ctx)
	if err != nil {
		return "", err
	}
	defer end()
	program, err := s.buildProgram(ctx)
	if err != nil {
		return "", err
	}
	before := s.cpu()
	took, err := s.tune(ctx, experiment("beside-ray", rayTrials, rayParallel, "exec "+program+" ${trialParameters.x}"), nil)
	if err != nil {
		return "", err
	}
	ours := (s.cpu() - before) / rayTrials
	end()
	out, err := exec.CommandContext(ctx, python, "bench/ray_tune.py", strconv.Itoa(rayTrials), strconv.Itoa(rayParallel)).Output()
	if err != nil {
		return "", fmt.Errorf("cannot run Ray Tune: %w", err)
	}
	var rate, used float64
	printed := strings.TrimSpace(string(out)) // the last line is the program's own
	if _, err := fmt.Sscan(printed[strings.LastIndexByte(printed, '\n')+1:], &rate, &used); err != nil {
		return "", fmt.Errorf("cannot read what Ray Tune printed, %q: %w", out, err)
	}
	return markdown.Table([][]string{
		{"", "trials/s", "processor time a trial"},
		{"Diwan, each trial a Job with a Pod", fmt.Sprintf("%.1f", rayTrials/took.Seconds()), fmt.Sprintf("%.0f ms, of the server", float64(ours)/float64(time.Millisecond))},
		{"Ray Tune, trials in processes that are used again", fmt.Sprintf("%.1f", rate), fmt.Sprintf("%.0f ms, of all its processes", used)},
	}) + fmt.Sprintf("\n%d trials, %d in parallel, of a program that takes 100 ms and reports ten times: at most %d trials/s.\n", rayTrials, rayParallel, rayParallel*10), nil
}
