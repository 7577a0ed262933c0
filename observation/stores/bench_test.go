// SPDX-License-Identifier: Apache-2.0

package stores_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/observationtest/database"
	"diwan.dev/diwan/observation/stores"
)

// The load of the benchmarks: so many trials that report at once, so many
// points of each in a batch, and other trials that are there already, each with
// a batch.
const (
	benchTrials = 50
	benchBatch  = 10
	benchOthers = 20_000
)

// BenchmarkStores measures, on the same servers, what storing and reading metric
// lines costs here and with Katib's table and statements: points/s written by 50
// trials at once, ms to read one trial among 20,000 others, and bytes a point.
//
//	go test ./observation/stores -run '^$' -bench Stores -benchtime 2s
//
// Servers wait for the disk at each commit, as they do in use.
func BenchmarkStores(b *testing.B) {
	dir := b.TempDir()
	b.Run("SQLite", func(b *testing.B) {
		path := filepath.Join(dir, "observations.db")
		benchStore(b, "sqlite:"+path, func() int64 {
			info, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			return info.Size()
		})
	})
	for _, kind := range []*database.Kind{database.Postgres(), database.MariaDB()} {
		b.Run(kind.Name, func(b *testing.B) {
			server := kind.LendDurable(b)
			db := database.SQL(b, server.URL())
			b.Run("diwan", func(b *testing.B) {
				benchStore(b, server.URL(), func() int64 { return tableSizes(b, db, "observation_sources", "observation_points") })
			})
			b.Run("katib", func(b *testing.B) { benchKatib(b, db) })
		})
	}
}

// benchStore measures a store of ours. Benchmarks run more than once: its data
// is made once.
func benchStore(b *testing.B, location string, size func() int64) {
	store, err := stores.Open(b.Context(), location)
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	if points, err := store.Points(b.Context(), benchTrial("other", 0), observation.Query{}); err != nil || len(points) == 0 {
		inParallel(benchOthers, func(i int) error { return store.Append(b.Context(), benchTrial("other", i), batchAt(i, 0)) })
	}
	b.Run("write", func(b *testing.B) {
		run := fmt.Sprint("write-", time.Now().UnixNano())
		var offsets [benchTrials]int64
		measure(b, func(trial int) error {
			offsets[trial]++
			return store.Append(b.Context(), benchTrial(run, trial), batchAt(trial, offsets[trial]-1))
		})
		b.ReportMetric(float64(b.N*benchBatch)/b.Elapsed().Seconds(), "points/s")
		b.ReportMetric(float64(size())/float64(benchBatch*benchOthers+b.N*benchBatch), "bytes/point")
	})
	b.Run("read", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			points, err := store.Points(b.Context(), benchTrial("other", i%benchOthers), observation.Query{})
			if err != nil || len(points) != benchBatch {
				b.Fatalf("%d points, %v", len(points), err)
			}
		}
	})
}

// benchKatib measures Katib's table, with an INSERT a metric line, as where
// trials push their metrics, and with one a batch.
func benchKatib(b *testing.B, db *sql.DB) {
	placeholder := func(int) string { return "?" }
	create := `CREATE TABLE IF NOT EXISTS observation_logs (trial_name VARCHAR(255) NOT NULL, id INT AUTO_INCREMENT PRIMARY KEY,
		time DATETIME(6), metric_name VARCHAR(255) NOT NULL, value TEXT NOT NULL)`
	if strings.Contains(fmt.Sprintf("%T", db.Driver()), "stdlib") {
		placeholder = func(n int) string { return fmt.Sprint("$", n) }
		create = `CREATE TABLE IF NOT EXISTS observation_logs (trial_name VARCHAR(255) NOT NULL, id serial PRIMARY KEY,
			time TIMESTAMP(6), metric_name VARCHAR(255) NOT NULL, value TEXT NOT NULL)`
	}
	if _, err := db.ExecContext(b.Context(), create); err != nil {
		b.Fatal(err)
	}
	insert := func(trial string, points []observation.Point) error {
		var text strings.Builder
		var args []any
		for i, p := range points {
			fmt.Fprintf(&text, ",(%s,%s,%s,%s)", placeholder(4*i+1), placeholder(4*i+2), placeholder(4*i+3), placeholder(4*i+4))
			args = append(args, trial, p.Time.UTC().Format("2006-01-02 15:04:05.999999"), p.Metric, p.Value)
		}
		_, err := db.ExecContext(b.Context(), "INSERT INTO observation_logs (trial_name, time, metric_name, value) VALUES "+text.String()[1:], args...)
		return err
	}
	var rows int
	if err := db.QueryRowContext(b.Context(), "SELECT count(*) FROM observation_logs").Scan(&rows); err != nil {
		b.Fatal(err)
	}
	if rows == 0 {
		inParallel(benchOthers, func(i int) error { return insert(benchTrial("other", i).Name, batchAt(i, 0).Points) })
	}
	for name, size := range map[string]int{"write-a-line": 1, "write-a-batch": benchBatch} {
		b.Run(name, func(b *testing.B) {
			measure(b, func(trial int) error { return insert(benchTrial("write", trial).Name, batchAt(trial, 0).Points[:size]) })
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "points/s")
			if err := db.QueryRowContext(b.Context(), "SELECT count(*) FROM observation_logs").Scan(&rows); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(tableSizes(b, db, "observation_logs"))/float64(rows), "bytes/point")
		})
	}
	b.Run("read", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			found, err := db.QueryContext(b.Context(), "SELECT time, metric_name, value FROM observation_logs WHERE trial_name = "+placeholder(1)+" ORDER BY time",
				benchTrial("other", i%benchOthers).Name)
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for found.Next() {
				n++
			}
			if err := found.Close(); err != nil || n != benchBatch {
				b.Fatalf("%d points, %v", n, err)
			}
		}
	})
}

func benchTrial(group string, i int) observation.Trial {
	return observation.Trial{Namespace: "default", Name: fmt.Sprintf("experiment-%s-%08d", group, i)}
}

func batchAt(trial int, offset int64) observation.Batch {
	b := observation.Batch{Source: fmt.Sprintf("5ee0b61b-65b7-4e8b-a8ce-%012d/training/0", trial), From: offset, To: offset + 1}
	for i := range benchBatch {
		at := time.Unix(1_700_000_000+offset, int64(i)*1_234_567)
		b.Points = append(b.Points, observation.Point{Time: at, Metric: "validation-accuracy", Value: "0.9765432"})
	}
	return b
}

// measure runs b.N writes from all trials at once.
func measure(b *testing.B, write func(trial int) error) {
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	var group sync.WaitGroup
	for trial := range benchTrials {
		group.Go(func() {
			for left.Add(-1) >= 0 {
				if err := write(trial); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.StopTimer()
}

// inParallel runs f for each number below n, many at once.
func inParallel(n int, f func(int) error) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range benchTrials {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := f(int(i)); err != nil {
					panic(err)
				}
			}
		})
	}
	group.Wait()
}

// tableSizes is the bytes of tables with their indexes.
func tableSizes(b *testing.B, db *sql.DB, tables ...string) (sum int64) {
	for _, table := range tables {
		query, before := "SELECT pg_total_relation_size('"+table+"')", "ANALYZE "+table
		if !strings.Contains(fmt.Sprintf("%T", db.Driver()), "stdlib") {
			before = "ANALYZE TABLE " + table
			query = "SELECT data_length + index_length FROM information_schema.tables WHERE table_schema = database() AND table_name = '" + table + "'"
		}
		if _, err := db.ExecContext(b.Context(), before); err != nil {
			b.Fatal(err)
		}
		var size int64
		if err := db.QueryRowContext(b.Context(), query).Scan(&size); err != nil {
			b.Fatal(err)
		}
		sum += size
	}
	return sum
}
