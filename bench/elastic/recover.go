// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"diwan.dev/diwan/bench/markdown"
)

// way is one way to have workers come and go.
type way struct {
	kind, text string
	calm       bool // nobody comes or goes
	spareFirst bool // the first worker is not killed, for the others' rendezvous lives there
}

var ways = []way{
	{kind: "ring", text: "undisturbed", calm: true},
	{kind: "ring", text: "Diwan, views, own all-reduce"},
	{kind: "gloo", text: "Diwan, views, PyTorch gloo"},
	{kind: "torchrun-views", text: "torchrun with Diwan's views as rendezvous"},
	{kind: "torchrun-hasty", text: "torchrun, c10d, a last call of 1 s", spareFirst: true},
	{kind: "torchrun", text: "torchrun, c10d, as it comes: a last call of 30 s", spareFirst: true},
}

const (
	epochs   = 60
	rounds   = 2 // in each, one worker is killed and one is added
	quiet    = 3 * time.Second
	patience = 150 * time.Second
)

// outcome is what came of one way.
type outcome struct {
	killed, added []time.Duration // the longest time without a step after each
	epochs        int
	exact         bool
	loss          string
}

func measureRecover(b *bench) (string, error) {
	rows := [][]string{{"", "a worker is killed: no step for", "a worker is added: no step for", "epochs, each sample once", "last loss"}}
	for i, w := range ways {
		o, err := b.recover(fmt.Sprint("recover", i), w)
		if b.ctx.Err() != nil {
			return "", b.ctx.Err()
		}
		end := fmt.Sprintf("%d, all", o.epochs)
		if err != nil {
			end = "it did not go on: " + err.Error()
		} else if !o.exact {
			end = fmt.Sprintf("%d, not all", o.epochs)
		}
		rows = append(rows, []string{w.text, seconds(o.killed), seconds(o.added), end, o.loss})
		fmt.Println(strings.Join(rows[len(rows)-1], " | "))
	}
	return fmt.Sprintf(`A network on handwritten digits, 1797 samples in batches of 64, steps of 50 ms or more. Three workers; %d times one
is killed, with its agent, and another is added, %v of work apart. Each entry: the longest time
without a step, the better and the worse of the two. torchrun writes a checkpoint after every step and so loses no work, which a larger model
could not afford; its first worker, which hosts the c10d rendezvous, is spared, since the job ends with it. With
torchrun all processes restart, which includes importing torch. With c10d they do so when the lost one has
sent no heartbeat for 15 s, and the last call for others is over.

`, rounds, quiet) + markdown.Table(rows), nil
}

// recover runs a training one way, and disturbs it. When that is over the rest goes quickly.
func (b *bench) recover(name string, w way) (o outcome, err error) {
	slow := filepath.Join(b.dir, name+".slow")
	if err := os.WriteFile(slow, nil, 0o600); err != nil {
		return o, err
	}
	f, err := b.newFleet(name, w.kind, fmt.Sprint("--epochs=", epochs), "--step-seconds=0.05", "--slow-while="+slow, "--checkpoint="+filepath.Join(b.dir, name+".checkpoint"))
	if err != nil {
		return o, err
	}
	defer f.killAll()
	for i := range 3 {
		if err := f.add(); err != nil {
			return o, err
		}
		if i == 0 && w.spareFirst {
			if err := f.listens(patience); err != nil {
				return o, err
			}
		}
	}
	if err := f.awaitSize(3, time.Now(), patience); err != nil {
		return o, err
	}
	for round := 0; round < rounds && !w.calm; round++ {
		victims := f.names()
		if w.spareFirst {
			victims = victims[1:]
		}
		if err := f.disturb(&o.killed, 2, func() error { f.kill(victims[round%len(victims)]); return nil }); err != nil {
			return o, err
		}
		if err := f.disturb(&o.added, 3, f.add); err != nil {
			return o, err
		}
	}
	if err := os.Remove(slow); err != nil {
		return o, err
	}
	if err := f.wait(patience); err != nil {
		return o, err
	}
	o.exact = true
	last := map[string]string{}
	for _, epoch := range f.epochs {
		last[epoch["epoch"]] = epoch["loss"]
		o.exact = o.exact && epoch["once"] == "True" && epoch["samples"] == "1797"
	}
	o.epochs, o.loss = len(last), last[fmt.Sprint(epochs)]
	return o, nil
}

// disturb changes the number of workers, and notes the longest time without a step until some time after all take part.
func (f *fleet) disturb(pauses *[]time.Duration, size int, change func() error) error {
	if err := f.bench.sleep(quiet); err != nil {
		return err
	}
	start := time.Now()
	if err := change(); err != nil {
		return err
	}
	if err := f.awaitSize(size, start, patience); err != nil {
		return err
	}
	if err := f.bench.sleep(quiet); err != nil {
		return err
	}
	var longest time.Duration
	steps := f.steps()
	for i := 1; i < len(steps); i++ {
		if steps[i].at.After(start) {
			longest = max(longest, steps[i].at.Sub(steps[i-1].at))
		}
	}
	*pauses = append(*pauses, longest)
	return nil
}

// seconds tells the best and the worst of some times.
func seconds(times []time.Duration) string {
	if len(times) == 0 {
		return ""
	}
	times = slices.Sorted(slices.Values(times))
	return fmt.Sprintf("%.2f s, %.2f s", times[0].Seconds(), times[len(times)-1].Seconds())
}
