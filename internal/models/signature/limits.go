// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"cmp"
	"context"
	"fmt"
)

// Limits bound what reading a model may cost. A zero is the default. The defaults
// admit the largest public models; with them a hostile file costs at most some
// hundred megabytes and some seconds.
type Limits struct {
	// Memory is how many bytes of the model are held in memory: names, graphs and
	// headers, not weights. The structures made of them take a small multiple of it.
	// Default 128 MiB.
	Memory int64
	// Items is how many fields, entries, tokens or opcodes are visited. Default 20 million.
	Items int64
	// Inflated is how many bytes are unpacked from compressed files and archive
	// members. Default 1 GiB.
	Inflated int64
	// Scanned is how many bytes of text are read through to find what matters in
	// them: trees in JSON or LightGBM's format. Default 8 GiB.
	Scanned int64
	// Depth is how deep messages, documents and objects may be nested. Default 200.
	Depth int
	// Files is how many files a folder or an archive may have. Default 100,000.
	Files int64
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Memory:   cmp.Or(l.Memory, 128<<20),
		Items:    cmp.Or(l.Items, 20_000_000),
		Inflated: cmp.Or(l.Inflated, 1<<30),
		Scanned:  cmp.Or(l.Scanned, 8<<30),
		Depth:    cmp.Or(l.Depth, 200),
		Files:    cmp.Or(l.Files, 100_000),
	}
}

// LimitError says that a model exceeds one of the [Limits].
type LimitError struct {
	// Limit is the name of the field in Limits, Value what it allows.
	Limit string
	Value int64
}

// limitMeanings completes "it needs more than N".
var limitMeanings = map[string]string{
	"Memory":   "bytes of names, graphs and headers",
	"Items":    "entries",
	"Inflated": "bytes when unpacked",
	"Scanned":  "bytes of text",
	"Depth":    "levels of nesting",
	"Files":    "files",
}

// Error names what there is too much of.
func (e *LimitError) Error() string {
	return fmt.Sprintf("it has more than %d %s, the limit %s", e.Value, limitMeanings[e.Limit], e.Limit)
}

// budget is what is left of the limits of one reading.
type budget struct {
	ctx                              context.Context
	limits                           Limits
	memory, items, inflated, scanned int64
}

func newBudget(ctx context.Context, limits Limits) *budget {
	limits = limits.withDefaults()
	return &budget{ctx: ctx, limits: limits, memory: limits.Memory, items: limits.Items, inflated: limits.Inflated, scanned: limits.Scanned}
}

// visit pays for one item, and from time to time asks whether to go on.
func (b *budget) visit() error { return b.visitAll(1) }

func (b *budget) visitAll(n int64) error {
	if n > b.items {
		return &LimitError{"Items", b.limits.Items}
	}
	before := b.items
	b.items -= n
	if before>>12 != b.items>>12 {
		return b.ctx.Err()
	}
	return nil
}

// hold pays for bytes kept in memory.
func (b *budget) hold(n int64) error {
	if n > b.memory {
		return &LimitError{"Memory", b.limits.Memory}
	}
	b.memory -= n
	return nil
}

// inflate pays for bytes that were unpacked.
func (b *budget) inflate(n int64) error {
	if b.inflated -= n; b.inflated < 0 {
		return &LimitError{"Inflated", b.limits.Inflated}
	}
	return b.ctx.Err()
}

// scan pays for bytes of text.
func (b *budget) scan(n int64) error {
	if b.scanned -= n; b.scanned < 0 {
		return &LimitError{"Scanned", b.limits.Scanned}
	}
	return b.ctx.Err()
}

// nest checks a depth.
func (b *budget) nest(depth int) error {
	if depth > b.limits.Depth {
		return &LimitError{"Depth", int64(b.limits.Depth)}
	}
	return nil
}
