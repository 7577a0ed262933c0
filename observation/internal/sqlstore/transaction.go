// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"diwan.dev/diwan/observation"
)

const (
	// patience bounds how long a statement, or a whole transaction, may take
	// before its connection counts as lost.
	patience = 30 * time.Second
	// maxRows and maxBytes bound one INSERT: databases limit the number of
	// arguments and the size of a statement.
	maxRows, maxBytes = 500, 1 << 20
)

// errAgain says that a transaction found less than it had just made sure of.
var errAgain = errors.New("a source was deleted concurrently")

// link is the connection that writes.
type link struct {
	db      *sql.DB
	dialect *Dialect
	conn    *sql.Conn // nil where there is none
}

// connect makes a connection unless there is one.
func (l *link) connect(ctx context.Context) error {
	if l.conn != nil {
		return nil
	}
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return err
	}
	for _, statement := range l.dialect.Session {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return errors.Join(err, conn.Close())
		}
	}
	l.conn = conn
	return nil
}

// drop gives up a connection that may be broken, for good.
func (l *link) drop() {
	if l.conn != nil {
		_ = l.conn.Raw(func(any) error { return driver.ErrBadConn })
		l.conn = nil
	}
}

func (l *link) close() error {
	if l.conn == nil {
		return nil
	}
	return l.conn.Close()
}

// transaction is one attempt to run changes, all appends or all deletions.
type transaction struct {
	link    *link
	changes []change
	doubt   bool

	results    []error // one each change, where run returns nil
	planned    bool    // the sources were locked and read
	committing bool    // COMMIT was sent
}

// run runs the transaction. After an error the connection has none open.
func (t *transaction) run() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := t.link.connect(ctx)
	if err == nil {
		err = t.exec(ctx, t.link.dialect.Begin)
	}
	if err == nil {
		err = t.change(ctx)
	}
	if err == nil {
		t.committing = true
		err = t.exec(ctx, "COMMIT")
	}
	if err != nil {
		t.abandon(err)
	}
	return err
}

// abandon ends a transaction that failed. A failure such as a full disk may
// have ended it already; then ROLLBACK's complaint says nothing.
func (t *transaction) abandon(cause error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if !errors.Is(cause, errAgain) && !t.link.dialect.Answered(cause) {
		t.link.drop()
		return
	}
	if err := t.exec(ctx, "ROLLBACK"); err != nil && !t.link.dialect.Answered(err) {
		t.link.drop()
	}
}

func (t *transaction) change(ctx context.Context) error {
	if t.changes[0].batch == nil {
		return t.delete(ctx)
	}
	held, err := t.hold(ctx)
	if err != nil {
		return err
	}
	t.planned = true
	p := decide(t.changes, held, t.doubt)
	t.results = p.results
	if err := t.insertPoints(ctx, p.points); err != nil {
		return err
	}
	return t.moveOffsets(ctx, p.offsets)
}

// hold locks the sources of the changes, and makes those that may be new. All
// transactions lock in the same order.
func (t *transaction) hold(ctx context.Context) (map[sourceKey]heldSource, error) {
	var all, begun []sourceKey
	for _, c := range t.changes {
		all = append(all, c.key())
		if c.batch.From == 0 {
			begun = append(begun, c.key())
		}
	}
	all, begun = ordered(all), ordered(begun)
	if len(begun) > 0 {
		var args []any
		for _, k := range begun {
			args = append(args, k.trial.Namespace, k.trial.Name, k.source, 0)
		}
		if err := t.exec(ctx, insertSources+rows(len(begun), 4)+t.link.dialect.KeepExisting, args...); err != nil {
			return nil, err
		}
	}
	held, err := t.lock(ctx, all, "namespace = ? AND trial_name = ? AND source = ?", func(k sourceKey) []any {
		return []any{k.trial.Namespace, k.trial.Name, k.source}
	})
	if err != nil {
		return nil, err
	}
	for _, k := range begun {
		if _, ok := held[k]; !ok {
			return nil, errAgain
		}
	}
	return held, nil
}

// lock locks the sources that a condition selects for one of the keys.
func (t *transaction) lock(ctx context.Context, keys []sourceKey, condition string, args func(sourceKey) []any) (map[sourceKey]heldSource, error) {
	var all []any
	for _, k := range keys {
		all = append(all, args(k)...)
	}
	where := condition + strings.Repeat(" OR "+condition, len(keys)-1)
	found, err := t.link.conn.QueryContext(ctx, t.link.dialect.text(selectSources+where+" ORDER BY id"+t.link.dialect.Lock), all...)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	held := map[sourceKey]heldSource{}
	for found.Next() {
		var k sourceKey
		var s heldSource
		if err := found.Scan(&s.id, &k.trial.Namespace, &k.trial.Name, &k.source, &s.stored); err != nil {
			return nil, err
		}
		held[k] = s
	}
	return held, found.Err()
}

// ordered returns each key once, in their order.
func ordered(keys []sourceKey) []sourceKey {
	slices.SortFunc(keys, func(a, b sourceKey) int {
		return cmp.Or(cmp.Compare(a.trial.Namespace, b.trial.Namespace), cmp.Compare(a.trial.Name, b.trial.Name), cmp.Compare(a.source, b.source))
	})
	return slices.Compact(keys)
}

func (t *transaction) insertPoints(ctx context.Context, points []numberedPoint) error {
	for len(points) > 0 {
		n, bytes := 0, 0
		for ; n < len(points) && n < maxRows && bytes < maxBytes; n++ {
			bytes += len(points[n].Metric) + len(points[n].Value)
		}
		text, args := asRows(points[:n])
		if t.link.dialect.Arrays {
			text, args = asArrays(points[:n])
		}
		if err := t.exec(ctx, insertPoints+text, args...); err != nil {
			return err
		}
		points = points[n:]
	}
	return nil
}

// asRows is the rest of an INSERT of points, row after row.
func asRows(points []numberedPoint) (text string, args []any) {
	for _, p := range points {
		args = append(args, p.source, formatTime(p.Time), p.Metric, p.Value)
	}
	return "VALUES " + rows(len(points), 4), args
}

// asArrays is the rest of an INSERT of points, column after column.
func asArrays(points []numberedPoint) (text string, args []any) {
	n := len(points)
	sources, times, metrics, values := make([]int64, n), make([]string, n), make([]string, n), make([]string, n)
	for i, p := range points {
		sources[i], times[i], metrics[i], values[i] = p.source, formatTime(p.Time), p.Metric, p.Value
	}
	return arraysOfRows, []any{sources, times, metrics, values}
}

func (t *transaction) moveOffsets(ctx context.Context, offsets map[int64]int64) error {
	if len(offsets) == 0 {
		return nil
	}
	var cases, ids strings.Builder
	for id, offset := range offsets {
		fmt.Fprintf(&cases, " WHEN %d THEN %d", id, offset)
		fmt.Fprintf(&ids, ",%d", id)
	}
	return t.exec(ctx, updateSources+cases.String()+" END WHERE id IN ("+ids.String()[1:]+")")
}

// delete deletes sources with their points.
func (t *transaction) delete(ctx context.Context) error {
	t.results = make([]error, len(t.changes))
	for _, c := range t.changes {
		condition, args := "namespace = ? AND trial_name = ?", []any{c.trial.Namespace, c.trial.Name}
		if c.source != "" {
			condition, args = condition+" AND source = ?", append(args, c.source)
		}
		held, err := t.lock(ctx, []sourceKey{{}}, condition, func(sourceKey) []any { return args })
		if err != nil {
			return err
		}
		var ids []any
		for _, s := range held {
			ids = append(ids, s.id)
		}
		if len(ids) == 0 {
			continue
		}
		for _, table := range []string{deletePoints, deleteSources} {
			if err := t.exec(ctx, table+rows(1, len(ids)), ids...); err != nil {
				return err
			}
		}
	}
	t.planned = true
	return nil
}

func (t *transaction) exec(ctx context.Context, statement string, args ...any) error {
	_, err := t.link.conn.ExecContext(ctx, t.link.dialect.text(statement), args...)
	return err
}

// errOffset reports whether an error is a refusal, which is the caller's to
// handle as it is.
func errOffset(err error) bool {
	var offset *observation.OffsetError
	return errors.As(err, &offset)
}
