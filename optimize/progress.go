// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Progress is how far [Study.Run] has come.
type Progress struct {
	// Trial is the one that ended last, Best the best so far if Found.
	Trial, Best Trial
	Found       bool
	// Ended of Total trials have ended, Failed of them without a value.
	Ended, Failed, Total int
	// Elapsed is the time since the run began.
	Elapsed time.Duration
}

// String says it in a line.
func (p Progress) String() string {
	line := fmt.Sprintf("%d of %d trials", p.Ended, p.Total)
	if p.Failed > 0 {
		line += fmt.Sprintf(", %d failed", p.Failed)
	}
	line += ", " + p.Elapsed.Round(100*time.Millisecond).String()
	if p.Found {
		line += fmt.Sprintf(", best %.6g at %v", p.Best.Value(), p.Best.Point)
	}
	return line
}

// ShowProgress returns a function for [Study.Run] that writes the progress to
// w: on a terminal as one line that changes, and elsewhere as a line for each
// better value and at the end.
func ShowProgress(w io.Writer) func(Progress) {
	if file, ok := w.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return func(p Progress) {
				end := ""
				if p.Ended == p.Total {
					end = "\n"
				}
				fmt.Fprintf(w, "\r\x1b[2K%v%s", p, end)
			}
		}
	}
	return func(p Progress) {
		if p.Found && p.Best.Index == p.Trial.Index || p.Ended == p.Total {
			fmt.Fprintln(w, p)
		}
	}
}

// reporter counts the trials of a run.
type reporter struct {
	study   *Study
	observe func(Progress)
	begin   time.Time

	mu       sync.Mutex
	progress Progress
}

func newReporter(s *Study, trials int, observe func(Progress)) *reporter {
	return &reporter{study: s, observe: observe, begin: time.Now(), progress: Progress{Total: trials}}
}

// ended counts the trial with an index, and reports.
func (r *reporter) ended(index int) {
	if r.observe == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &r.progress
	p.Trial = r.study.trial(index)
	p.Best, p.Found = r.study.Best()
	p.Ended++
	if p.Trial.State == Failed || p.Trial.State == Infeasible {
		p.Failed++
	}
	p.Elapsed = time.Since(r.begin)
	r.observe(*p)
}
