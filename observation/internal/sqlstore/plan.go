// SPDX-License-Identifier: Apache-2.0

package sqlstore

import "diwan.dev/diwan/observation"

// sourceKey names a source.
type sourceKey struct {
	trial  observation.Trial
	source string
}

// heldSource is a source as the database has it.
type heldSource struct {
	id, stored int64
}

// numberedPoint is a point with the number of its source.
type numberedPoint struct {
	source int64
	observation.Point
}

// plan is what a transaction of appends writes.
type plan struct {
	points  []numberedPoint
	offsets map[int64]int64 // by the number of the source, where they move
	results []error         // one each append: nil or an OffsetError
}

// decide plans appends to sources that are locked. doubt says that an earlier
// transaction with the same appends may have been committed: then one whose
// bytes are stored needs nothing.
func decide(appends []change, held map[sourceKey]heldSource, doubt bool) plan {
	p := plan{offsets: map[int64]int64{}, results: make([]error, len(appends))}
	for i, c := range appends {
		b := c.batch
		s := held[c.key()]
		have, moved := p.offsets[s.id]
		if !moved {
			have = s.stored
		}
		switch {
		case doubt && have >= b.To:
		case have != b.From:
			p.results[i] = &observation.OffsetError{Trial: c.trial, Source: b.Source, Have: have, Got: b.From}
		case have != b.To:
			for _, point := range b.Points {
				p.points = append(p.points, numberedPoint{s.id, point})
			}
			p.offsets[s.id] = b.To
		}
	}
	return p
}
