// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"diwan.dev/diwan/observation"
)

// scraper reads the metrics that a program serves in Prometheus's text format.
// What has changed since the last time becomes a line of JSON, and the lines are
// the bytes of a stream.
type scraper struct {
	config  Config
	page    *page
	metrics []string
	stream  *Stream
	store   observation.Store
	warn    func(message string)

	life    context.Context // of requests
	end     context.CancelFunc
	request sync.WaitGroup
	answers chan answer
	busy    bool      // a request is under way, or its answer waits
	due     time.Time // of the next request

	begun  bool // offset and last are the store's
	offset int64
	last   map[string]string // the value of each metric
	since  time.Time         // when it first looked
	good   bool              // the page was there once
	failed error             // of the last request
	over   bool              // the last request was made
}

// answer is the outcome of a request.
type answer struct {
	at   time.Time
	text []byte
	err  error
}

// scraper returns the observer of the kind Prometheus.
func (c *Collector) scraper(spec *Spec, s Subject, stream *Stream) (*scraper, error) {
	p, err := newPage(spec.Page, s.Address, c.config)
	if err != nil {
		return nil, err
	}
	o := &scraper{config: c.config, page: p, metrics: spec.Metrics, stream: stream, store: c.store, warn: s.Warn, answers: make(chan answer, 1)}
	o.life, o.end = context.WithCancel(context.Background())
	return o, nil
}

// Look implements Observer.
func (o *scraper) Look(ctx context.Context, now time.Time) error {
	if err := o.begin(ctx, now); err != nil {
		return err
	}
	select {
	case a := <-o.answers:
		o.busy = false
		if err := o.take(ctx, a); err != nil {
			return err
		}
	default:
	}
	if !o.busy && !now.Before(o.due) {
		o.busy, o.due = true, now.Add(o.pause(now))
		o.request.Go(func() { o.answers <- o.ask(o.life, now) })
	}
	return nil
}

// Finish implements Observer. It asks a last time, as another program of the
// Pod may serve the page.
func (o *scraper) Finish(ctx context.Context, now time.Time) error {
	if err := o.begin(ctx, now); err != nil {
		return err
	}
	if o.busy {
		a := <-o.answers
		o.busy = false
		if err := o.take(ctx, a); err != nil {
			return err
		}
	}
	if !o.over {
		a := o.ask(ctx, now)
		if a.err == nil || !o.good {
			if err := o.take(ctx, a); err != nil {
				return err
			}
		}
		o.over = true
	}
	if err := o.stream.Finish(ctx); err != nil {
		return err
	}
	o.tell()
	return nil
}

// Discard implements Observer.
func (o *scraper) Discard(ctx context.Context) error {
	o.begun = false
	return o.stream.Discard(ctx)
}

// Needs implements Observer.
func (o *scraper) Needs() int64 { return math.MaxInt64 }

// Close implements Observer.
func (o *scraper) Close() {
	o.end()
	o.request.Wait()
	o.page.close()
}

// begin resumes where the store is.
func (o *scraper) begin(ctx context.Context, now time.Time) error {
	if o.since.IsZero() {
		o.since = now
	}
	if o.begun {
		return nil
	}
	offset, err := o.stream.Offset(ctx)
	if err != nil {
		return err
	}
	last := map[string]string{}
	if offset > 0 {
		points, err := o.store.Points(ctx, o.stream.trial, observation.Query{})
		if err != nil {
			return err
		}
		for _, p := range points {
			last[p.Metric] = p.Value
		}
	}
	o.offset, o.last, o.begun = offset, last, true
	return nil
}

// pause is how long to wait for the next request: a fifth of the run's age, so
// that short runs are seen too, within bounds.
func (o *scraper) pause(now time.Time) time.Duration {
	return min(max(now.Sub(o.since)/5, o.config.ScrapeInterval/5), o.config.ScrapeInterval)
}

func (o *scraper) ask(ctx context.Context, now time.Time) answer {
	ctx, cancel := context.WithTimeout(ctx, o.config.ScrapeTimeout)
	defer cancel()
	text, err := o.page.get(ctx)
	return answer{at: now, text: text, err: err}
}

// take stores what is new in a response. Problems are reported to the user, at
// once if the program serves the page, and after a while if it does not
// answer, as it may not have started to.
func (o *scraper) take(ctx context.Context, a answer) error {
	found, unclear, err := map[string]sample(nil), []string(nil), a.err
	if err == nil {
		if found, unclear, err = readPage(a.text, o.metrics); err != nil {
			err = &pageError{err}
		}
	}
	o.failed = err
	var wrong *pageError
	switch {
	case errors.As(err, &wrong), err != nil && !o.good && a.at.Sub(o.since) >= o.config.ScrapePatience:
		o.warn(fmt.Sprintf("cannot read metrics at %s: %v", o.page.url, err))
	}
	if err != nil {
		return nil
	}
	o.good = true
	if len(unclear) > 0 {
		o.warn(fmt.Sprintf("metrics at %s: %s", o.page.url, strings.Join(unclear, "; ")))
	}
	return o.write(ctx, a.at, found)
}

// write gives the stream a line for each sample that is new.
func (o *scraper) write(ctx context.Context, now time.Time, found map[string]sample) error {
	var lines []byte
	for _, metric := range o.metrics {
		s, ok := found[metric]
		if !ok || s.value == o.last[metric] {
			continue
		}
		at := s.at
		if at.IsZero() {
			at = now
		}
		line, err := json.Marshal(map[string]string{timestampKey: at.Format(time.RFC3339Nano), metric: s.value})
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	if len(lines) == 0 {
		return nil
	}
	if err := o.stream.Write(ctx, o.offset, lines, now); err != nil {
		o.begun = false
		return err
	}
	o.offset += int64(len(lines))
	for metric, s := range found {
		o.last[metric] = s.value
	}
	return nil
}

// tell warns that the objective never appeared.
func (o *scraper) tell() {
	if len(o.metrics) == 0 || o.last[o.metrics[0]] != "" {
		return
	}
	if o.good {
		o.warn(fmt.Sprintf("the page %s never had the objective metric %s", o.page.url, o.metrics[0]))
	} else {
		o.warn(fmt.Sprintf("cannot read metrics at %s, not even when the program ended: %v", o.page.url, o.failed))
	}
}
