// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"diwan.dev/diwan/bench/markdown"
)

const (
	slots        = 6 // accelerators of the cluster
	wantedSlots  = 4 // of each job
	shareEpochs  = 4
	sampleTime   = "0.015" // seconds that an accelerator takes for a sample
	secondArrive = 0.25    // of the time that a job takes alone
)

// measureShare runs two jobs on a cluster that cannot hold both whole.
func measureShare(b *bench) (string, error) {
	alone, err := b.share("alone", nil)
	if err != nil {
		return "", err
	}
	arrive := time.Duration(secondArrive * float64(alone[0]))
	gang, err := b.share("gang", &plan{arrive: arrive})
	if err != nil {
		return "", err
	}
	elastic, err := b.share("elastic", &plan{arrive: arrive, elastic: true})
	if err != nil {
		return "", err
	}
	rows := [][]string{{"", "first job ends", "second job ends", "ratio"}}
	row := func(text string, ends []time.Duration) {
		rows = append(rows, []string{text, fmt.Sprintf("%.1f s", ends[0].Seconds()), fmt.Sprintf("%.1f s", ends[1].Seconds()), fmt.Sprintf("%.2f", ends[1].Seconds()/gang[1].Seconds())})
	}
	row("gang", gang)
	row("elastic", elastic)
	rows = append(rows, []string{"ElasticDL's report: gang", "", "968 s", "1.00"}, []string{"ElasticDL's report: elastic", "", "809 s", "0.84"})
	return fmt.Sprintf(`Two jobs of %d workers each on %d slots. The first starts at 0, the second after %.1f s. As gangs, a job runs with %d
workers or waits; elastic, the second starts with the free slots, and takes over those of the first when it ends. A sample takes
%s s of a slot, %d epochs of 1797 samples per job. For comparison, the figures of ElasticDL's report (docs/benchmark/allreduce/report.md there:
6 GPUs, two jobs of 4); its jobs are longer and have other models, so only the ratios compare.

`, wantedSlots, slots, arrive.Seconds(), wantedSlots, sampleTime, shareEpochs) + markdown.Table(rows), nil
}

// plan is when the second job comes and whether it takes what is free.
type plan struct {
	arrive  time.Duration
	elastic bool
}

// share runs one job, or two with a plan, and returns when each has ended, counted from the first one's start.
func (b *bench) share(name string, p *plan) ([]time.Duration, error) {
	jobs := make([]*fleet, 1, 2)
	if p != nil {
		jobs = jobs[:2]
	}
	for i := range jobs {
		f, err := b.newFleet(fmt.Sprint(name, i), "ring", fmt.Sprint("--epochs=", shareEpochs), "--sample-seconds="+sampleTime)
		if err != nil {
			return nil, err
		}
		defer f.killAll()
		jobs[i] = f
	}
	ends := make([]time.Duration, len(jobs))
	begun := time.Now()
	for running := true; running; {
		running = false
		free := slots
		for i, f := range jobs {
			if ends[i] == 0 && f.finished() {
				ends[i] = time.Since(begun)
				if err := f.wait(patience); err != nil {
					return nil, err
				}
			}
			free -= len(f.workers)
			running = running || ends[i] == 0
		}
		for i, f := range jobs {
			wanted := wantedSlots - len(f.workers)
			if ends[i] != 0 || wanted == 0 || i == 1 && time.Since(begun) < p.arrive {
				continue
			}
			if free < wanted && (p == nil || !p.elastic) {
				continue
			}
			for range min(free, wanted) {
				if err := f.add(); err != nil {
					return nil, err
				}
				free--
			}
		}
		if err := b.sleep(20 * time.Millisecond); err != nil {
			return nil, err
		}
	}
	return ends, nil
}

// finished reports whether a worker has reported the last epoch.
func (f *fleet) finished() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, epoch := range f.epochs {
		if epoch["epoch"] == fmt.Sprint(shareEpochs) {
			return true
		}
	}
	return false
}
