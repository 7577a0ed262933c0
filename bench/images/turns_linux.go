// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// contestant is one way of doing what is measured. A turn costs what it says.
type contestant struct {
	name string
	turn func(context.Context) (cost, error)
	// costs of its turns, and why it has none
	costs   []cost
	failure error
}

// cost is what one turn took. What a contestant does not measure is 0.
type cost struct {
	wall, synced time.Duration // synced includes that the files are on stable storage
	cpu          time.Duration // in user and kernel mode, of all processes that were waited for
	memory       int64         // peak of the resident memory of the largest process, in bytes
}

// alternate gives each contestant as many turns, after one that does not count, if warm
// is set. The first of a round is another one each time.
func alternate(ctx context.Context, all []*contestant, rounds int, warm bool) error {
	first := 0
	if warm {
		first = -1
	}
	for round := first; round < rounds; round++ {
		for i := range all {
			c := all[(i+max(round, 0))%len(all)]
			if c.failure != nil {
				continue
			}
			spent, err := c.turn(ctx)
			fmt.Fprintf(os.Stderr, "turn %d of %s: %v, CPU %v\n", round+1, c.name, spent.wall, spent.cpu)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				c.failure = err
				c.costs = nil
			} else if round >= 0 {
				c.costs = append(c.costs, spent)
			}
		}
	}
	if all[0].failure != nil {
		return all[0].failure
	}
	return nil
}

// sorted are the figures of a contestant's turns, the least first.
func sorted[T time.Duration | int64](c *contestant, of func(cost) T) []T {
	var figures []T
	for _, one := range c.costs {
		figures = append(figures, of(one))
	}
	slices.Sort(figures)
	return figures
}

func wall(c cost) time.Duration   { return c.wall }
func synced(c cost) time.Duration { return c.synced }
func cpu(c cost) time.Duration    { return c.cpu }

// ratios are how many times a contestant's median and least figure are those of base.
func ratios(c, base *contestant, of func(cost) time.Duration) (median, least float64) {
	have, want := sorted(c, of), sorted(base, of)
	return float64(have[len(have)/2]) / float64(max(want[len(want)/2], 1)), float64(have[0]) / float64(max(want[0], 1))
}

// failures tells who is missing from a table, and why.
func failures(all []*contestant) string {
	var b strings.Builder
	for _, c := range all {
		if c.failure != nil {
			fmt.Fprintf(&b, "\n%s did not run: `%s`\n", c.name, strings.ReplaceAll(c.failure.Error(), "\n", " "))
		}
	}
	return b.String()
}

// execute runs a program to its end. The error has what it wrote.
func execute(ctx context.Context, args ...string) (*os.ProcessState, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%s: %w: %s", args[0], err, strings.TrimSpace(out.String()))
	}
	return cmd.ProcessState, err
}
