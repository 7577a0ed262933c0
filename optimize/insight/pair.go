// SPDX-License-Identifier: Apache-2.0

package insight

import "slices"

// pair is two parameters that may exist in the same point.
type pair struct {
	i, j   int
	chance float64 // that both exist

	apart  bool   // they have no root in common, and are independent
	above  int    // otherwise: the nearest parameter that both depend on, which may be i
	branch [2]int // the children of that by which i and j depend on it
	both   []bool // by cell of above: whether both branches exist

	table []float64 // by cell of i and of j: the mean where both have these values
}

// newPair returns the pair of two parameters, or false if no point has both.
func (l *lattice) newPair(i, j int) (*pair, bool) {
	p := &pair{i: i, j: j, branch: [2]int{-1, -1}}
	up, across := l.path(i), l.path(j)
	if slices.Contains(up, j) {
		p.i, p.j, up, across = j, i, across, up
	}
	p.apart = up[len(up)-1] != across[len(across)-1]
	if p.apart {
		p.chance = l.dims[i].chance * l.dims[j].chance
	} else {
		l.join(p, up, across)
	}
	return p, p.chance > 0
}

// join completes a pair with a common root, of which j is not above i. up and
// across are their paths.
func (l *lattice) join(p *pair, up, across []int) {
	for up[len(up)-1] == across[len(across)-1] {
		p.above = up[len(up)-1]
		up, across = up[:len(up)-1], across[:len(across)-1]
		if len(up) == 0 {
			break
		}
	}
	p.branch[1] = across[len(across)-1]
	p.both = slices.Clone(l.dims[p.branch[1]].active)
	if p.above == p.i {
		p.chance = l.dims[p.j].chance
		return
	}
	p.branch[0] = up[len(up)-1]
	count := 0
	for cell, active := range l.dims[p.branch[0]].active {
		if p.both[cell] = p.both[cell] && active; p.both[cell] {
			count++
		}
	}
	p.chance = l.dims[p.above].chance * float64(count) / float64(len(p.both))
	for k, end := range [2]int{p.i, p.j} {
		p.chance *= l.dims[end].chance / l.dims[p.branch[k]].chance
	}
}

// nested reports whether j depends on i.
func (p *pair) nested() bool { return !p.apart && p.above == p.i }

// allowed returns the cells of i at which j may exist; nil is all.
func (p *pair) allowed() []bool {
	if p.nested() {
		return p.both
	}
	return nil
}

// profiles appends those of both parameters.
func (f *leaf) profiles(intoI, intoJ profile, p *pair) (i, j profile) {
	but := -1
	if p.nested() {
		but = p.branch[1]
	}
	return f.profile(intoI, p.i, p.allowed(), but), f.profile(intoJ, p.j, nil, -1)
}

// scale returns the chance of a leaf where both exist, but for themselves and
// what depends on them.
func (f *leaf) scale(p *pair) float64 {
	switch {
	case p.apart:
		return f.others(p.i) / f.subtree[f.root(p.j)] * f.rise(p.i, -1) * f.rise(p.j, -1)
	case p.nested():
		return f.others(p.i) * f.rise(p.i, -1) * f.rise(p.j, p.i)
	}
	return f.others(p.i) * f.rise(p.i, p.above) * f.rise(p.j, p.above) *
		f.mean(p.above, p.both, p.branch[0], p.branch[1]) * f.rise(p.above, -1)
}

// interaction returns the variance of the table that neither of the two
// explains alone, over all points: those that do not have both have none.
func (p *pair) interaction(columns int) float64 {
	rows := len(p.table) / columns
	allowed := p.allowed()
	mean, count := 0.0, 0
	byRow, byColumn := make([]float64, rows), make([]float64, columns)
	for r := range rows {
		if allowed != nil && !allowed[r] {
			continue
		}
		count++
		for c, v := range p.table[r*columns : (r+1)*columns] {
			byRow[r] += v / float64(columns)
			byColumn[c] += v
		}
		mean += byRow[r]
	}
	mean /= float64(count)
	variance := 0.0
	for r := range rows {
		if allowed != nil && !allowed[r] {
			continue
		}
		for c, v := range p.table[r*columns : (r+1)*columns] {
			d := v - byRow[r] - byColumn[c]/float64(count) + mean
			variance += d * d
		}
	}
	return p.chance * variance / float64(count*columns)
}
