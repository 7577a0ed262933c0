// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"diwan.dev/diwan/observation"
)

// maxGroup bounds the changes of one transaction, so that the first does not
// wait for an endless row of others.
const maxGroup = 256

// writer runs changes on the connection that it owns, those that wait in one
// transaction.
type writer struct {
	conn       *sql.Conn
	statements map[string]*sql.Stmt
	requests   chan request
	done       chan struct{} // closed when the goroutine has ended
}

// change is a change that runs within a transaction of its writer. When it
// returns an [*observation.OffsetError] it has changed nothing.
type change func(context.Context, *writer) error

type request struct {
	ctx    context.Context
	change change
	result chan<- error // has room for the one result
}

// startWriter returns a writer that owns conn until stop.
func startWriter(ctx context.Context, conn *sql.Conn) (*writer, error) {
	w := &writer{
		conn:       conn,
		statements: map[string]*sql.Stmt{},
		requests:   make(chan request, maxGroup),
		done:       make(chan struct{}),
	}
	for _, text := range []string{
		selectOffset, insertSource, updateSource, deleteSource, deleteTrial,
		insertPoint, deleteSourcePoints, deleteTrialPoints,
	} {
		statement, err := conn.PrepareContext(ctx, text)
		if err != nil {
			return nil, err
		}
		w.statements[text] = statement
	}
	go w.run()
	return w, nil
}

// do hands a change over and waits until it is on disk.
func (w *writer) do(ctx context.Context, change change) error {
	result := make(chan error, 1)
	select {
	case w.requests <- request{ctx, change, result}:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stop runs what was handed over and gives up the connection. No do may follow.
func (w *writer) stop() error {
	close(w.requests)
	<-w.done
	var err error
	for _, statement := range w.statements {
		err = errors.Join(err, statement.Close())
	}
	return errors.Join(err, w.conn.Close())
}

func (w *writer) run() {
	defer close(w.done)
	for first := range w.requests {
		w.commit(w.group(first))
	}
}

// group returns first and the requests that wait behind it.
func (w *writer) group(first request) []request {
	group := []request{first}
	for len(group) < maxGroup {
		select {
		case r, ok := <-w.requests:
			if !ok {
				return group
			}
			group = append(group, r)
		default:
			return group
		}
	}
	return group
}

// commit runs the changes of a group in one transaction. Where one of them
// fails, each runs in a transaction of its own, so that it fails alone.
func (w *writer) commit(group []request) {
	results := make([]error, len(group))
	err := transact(context.Background(), w.conn, func() error {
		for i, r := range group {
			if results[i] = w.apply(r); results[i] != nil && !refused(results[i]) {
				return results[i]
			}
		}
		return nil
	})
	if err != nil && len(group) > 1 {
		for _, r := range group {
			w.commit([]request{r})
		}
		return
	}
	for i, r := range group {
		if err != nil {
			results[i] = err
		}
		r.result <- results[i]
	}
}

// apply runs one change, unless its caller has gone. A change that has begun
// runs to its end whatever its caller does.
func (w *writer) apply(r request) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	return r.change(context.WithoutCancel(r.ctx), w)
}

// refused reports whether a change with this error has changed nothing.
func refused(err error) bool {
	var offset *observation.OffsetError
	return errors.As(err, &offset) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func (w *writer) append(ctx context.Context, t observation.Trial, b observation.Batch) error {
	var have int64
	err := w.statements[selectOffset].QueryRowContext(ctx, t.Namespace, t.Name, b.Source).Scan(&have)
	set := updateSource
	if errors.Is(err, sql.ErrNoRows) {
		err, set = nil, insertSource
	}
	switch {
	case err != nil:
		return err
	case have != b.From:
		return &observation.OffsetError{Trial: t, Source: b.Source, Have: have, Got: b.From}
	}
	for _, p := range b.Points {
		if err := w.exec(ctx, insertPoint, t.Namespace, t.Name, b.Source, formatTime(p.Time), p.Metric, p.Value); err != nil {
			return err
		}
	}
	return w.exec(ctx, set, b.To, t.Namespace, t.Name, b.Source)
}

func (w *writer) deleteSource(ctx context.Context, t observation.Trial, source string) error {
	if err := w.exec(ctx, deleteSourcePoints, t.Namespace, t.Name, source); err != nil {
		return err
	}
	return w.exec(ctx, deleteSource, t.Namespace, t.Name, source)
}

func (w *writer) deleteTrial(ctx context.Context, t observation.Trial) error {
	if err := w.exec(ctx, deleteTrialPoints, t.Namespace, t.Name); err != nil {
		return err
	}
	return w.exec(ctx, deleteTrial, t.Namespace, t.Name)
}

func (w *writer) exec(ctx context.Context, statement string, args ...any) error {
	_, err := w.statements[statement].ExecContext(ctx, args...)
	return err
}

// transact runs f in a transaction that it commits when f returns nil.
func transact(ctx context.Context, conn *sql.Conn, f func() error) error {
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f()
	if err == nil {
		_, err = conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		// A failure such as a full disk may have rolled back already; then
		// this one's complaint says nothing.
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	}
	return err
}
