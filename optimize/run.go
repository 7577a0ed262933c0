// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Objective evaluates the point of a trial. An error that wraps
// [ErrCannotEvaluate] says that the point is infeasible; one that wraps
// [ErrStopped], that [Study.Report] stopped the trial; any other, that it
// failed. The values are one for each objective of the study.
type Objective func(ctx context.Context, t Trial) (values []float64, err error)

// ErrCannotEvaluate is wrapped by an objective's error about a point that
// cannot be evaluated, now or another time.
var ErrCannotEvaluate = errors.New("point cannot be evaluated")

// Single is the objective that a function of a point is.
func Single(f func(Point) float64) Objective {
	return func(_ context.Context, t Trial) ([]float64, error) { return []float64{f(t.Point)}, nil }
}

// Run evaluates an objective at some number of suggestions, so many of them at
// once, and calls observe, if it is not nil, after each result, one call at a
// time. It returns when all have ended: early, without an error, when the space
// is exhausted; with the context's error, when that ends. Trials that were
// begun then fail, and their points are not tried again.
func (s *Study) Run(ctx context.Context, trials, parallel int, objective Objective, observe func(Progress)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var workers sync.WaitGroup
	report := newReporter(s, trials, observe)
	turns := make(chan struct{}, max(trials, 0))
	for range trials {
		turns <- struct{}{}
	}
	close(turns)
	for range min(max(parallel, 1), trials) {
		workers.Go(func() {
			for range turns {
				switch err := s.evaluate(ctx, objective, report); {
				case errors.Is(err, ErrExhausted):
					return // what the others are evaluating still counts
				case err != nil:
					cancel(err)
					return
				}
			}
		})
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("cannot continue the study: %w", err)
	}
	return nil
}

// evaluate asks for one suggestion and tells the objective's result.
func (s *Study) evaluate(ctx context.Context, objective Objective, report *reporter) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	trial, err := s.Ask(ctx)
	if err != nil {
		return err
	}
	values, err := objective(ctx, trial)
	switch {
	case errors.Is(err, ErrStopped):
		err = s.Stop(trial.Index)
	case errors.Is(err, ErrCannotEvaluate):
		err = s.TellResult(trial.Index, Result{State: Infeasible})
	case err != nil:
		err = s.Fail(trial.Index)
	default:
		err = s.Tell(trial.Index, values...)
	}
	if err != nil {
		return err
	}
	report.ended(trial.Index)
	return nil
}

// Progress is the progress of [Study.Run].
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
