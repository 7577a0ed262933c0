// SPDX-License-Identifier: Apache-2.0

package insight

import "slices"

// leaf is a leaf of a tree with the probability that a random point is in it.
//
// A parameter is independent of all others but for the one that decides whether
// it exists. So the chance of a leaf is a product over parameters that depend
// on no other, of the chance of each one's subtree: the mean over its cells of
// the product of its children's, where a child that does not exist belongs to
// the leaf or does not.
type leaf struct {
	*lattice
	covers  []cover
	subtree []float64 // by parameter: the chance of it and what depends on it, if it exists
	absent  []bool    // by parameter: whether it and what depends on it may all be missing
	chance  float64
}

func (l *lattice) newLeaf() *leaf {
	return &leaf{lattice: l, subtree: make([]float64, len(l.dims)), absent: make([]bool, len(l.dims))}
}

// weigh computes the chances of the leaf.
func (f *leaf) weigh(covers []cover) {
	f.covers, f.chance = covers, 1
	for _, i := range slices.Backward(f.order) {
		d := &f.dims[i]
		f.absent[i] = covers[i].missing
		for _, c := range d.children {
			f.absent[i] = f.absent[i] && f.absent[c]
		}
		if len(d.children) == 0 {
			f.subtree[i] = float64(covers[i].size()) / float64(len(d.at))
		} else {
			f.subtree[i] = f.mean(i, nil, -1, -1)
		}
		if d.parent < 0 {
			f.chance *= f.subtree[i]
		}
	}
}

// children returns the chance of the children of parameter i, but for two,
// where it has the value of a cell.
func (f *leaf) children(i, cell, but, butToo int) float64 {
	chance := 1.0
	for _, c := range f.dims[i].children {
		switch {
		case c == but || c == butToo:
		case f.dims[c].active[cell]:
			chance *= f.subtree[c]
		case !f.absent[c]:
			return 0
		}
	}
	return chance
}

// mean returns the chance of parameter i and its children but for two, over
// the cells that are allowed; nil allows all.
func (f *leaf) mean(i int, allowed []bool, but, butToo int) float64 {
	sum, count := 0.0, 0
	for cell := range f.dims[i].at {
		if allowed != nil && !allowed[cell] {
			continue
		}
		count++
		if f.covers[i].contains(cell) {
			sum += f.children(i, cell, but, butToo)
		}
	}
	if count == 0 {
		return 0
	}
	return sum / float64(count)
}

// rise returns the chance of all on which parameter i depends, below top, and
// of what else depends on these, where i exists.
func (f *leaf) rise(i, top int) float64 {
	chance := 1.0
	for p := f.dims[i].parent; p >= 0 && p != top; i, p = p, f.dims[p].parent {
		chance *= f.mean(p, f.dims[i].active, i, -1)
	}
	return chance
}

// others returns the chance of all parameters whose root is not that of i.
func (f *leaf) others(i int) float64 { return f.chance / f.subtree[f.root(i)] }

// profile is by how much cells of a parameter belong to a leaf.
type profile []weighted

type weighted struct {
	run
	weight float64
}

// profile appends that of parameter i and what depends on it, but for one, at
// the cells that are allowed; nil allows all.
func (f *leaf) profile(into profile, i int, allowed []bool, but int) profile {
	for _, r := range f.covers[i].runs {
		if len(f.dims[i].children) == 0 {
			into = append(into, weighted{r, 1})
			continue
		}
		for cell := r.lo; cell < r.hi; cell++ {
			if allowed == nil || allowed[cell] {
				into = append(into, weighted{run{cell, cell + 1}, f.children(i, cell, but, -1)})
			}
		}
	}
	return into
}
