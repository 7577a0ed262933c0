// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkDirectory measures a look at a directory that has not changed: with
// event files alone, and among 10,000 other files with a walk each time.
func BenchmarkDirectory(b *testing.B) {
	for name, others := range map[string]int{"files": 0, "walk": 10_000} {
		b.Run(name, func(b *testing.B) {
			f := newFolder(b, "loss")
			for i := range 10 {
				f.add(fmt.Sprintf("%d.tfevents", i), frame(simple(1, "loss", 1)))
			}
			for i := range others {
				f.add(fmt.Sprintf("checkpoints/%d", i), nil)
			}
			o := f.observer()
			f.look(o)
			o.(*directory).due = now().Add(time.Hour)
			for b.Loop() {
				if others > 0 {
					o.(*directory).due = now()
				}
				f.look(o)
			}
		})
	}
}

// BenchmarkRecords measures how fast event files are read.
func BenchmarkRecords(b *testing.B) {
	var file []byte
	for i := range 1000 {
		file = append(file, frame(simple(float64(i), "train/loss", float32(i)))...)
	}
	p := &events{dir: "/logs", seen: newTags([]string{"train/loss"})}
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		r := &records{max: 1 << 20}
		r.add(file, func(data []byte) { p.parse(nil, data, now()) })
	}
}

// BenchmarkPage measures how fast a page of 1,000 metrics is read.
func BenchmarkPage(b *testing.B) {
	var page []byte
	for i := range 1000 {
		page = fmt.Appendf(page, "# HELP metric_%d Some metric.\n# TYPE metric_%d gauge\nmetric_%d{job=\"train\"} %d\n", i, i, i, i)
	}
	page = append(page, "loss 1\n"...)
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		if found, _, err := readPage(page, []string{"loss"}); err != nil || len(found) != 1 {
			b.Fatal(found, err)
		}
	}
}
