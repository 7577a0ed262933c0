// SPDX-License-Identifier: Apache-2.0

package forest

import "math"

// Tree is a regression tree. The first of its nodes is the root.
type Tree struct {
	Nodes []Node
}

// Node is a node of a tree: a leaf, or a split of the rows at one column.
type Node struct {
	// Mean is that of the rows of the node.
	Mean float64
	// Column is that of the split.
	Column int32
	// Left and Right are the indices of the children, 0 of a leaf.
	Left, Right int32
	// Threshold divides a numeric column: numbers up to it go left.
	Threshold float64
	// Subset has for each category of a categorical column whether it goes
	// left; it is nil for a numeric one.
	Subset []bool
	// MissingLeft says that a missing value goes left.
	MissingLeft bool

	variance float64
	from, to int32 // of the rows of a leaf, in the order that growing leaves
}

// Leaf reports whether the node has no children.
func (n *Node) Leaf() bool { return n.Left == 0 }

// leaf returns the leaf of a row.
func (t *Tree) leaf(row []float64) *Node {
	n := &t.Nodes[0]
	for !n.Leaf() {
		if t.left(n, row[n.Column]) {
			n = &t.Nodes[n.Left]
		} else {
			n = &t.Nodes[n.Right]
		}
	}
	return n
}

func (t *Tree) left(n *Node, v float64) bool {
	switch {
	case math.IsNaN(v):
		return n.MissingLeft
	case n.Subset != nil:
		return n.Subset[category(v, len(n.Subset))]
	}
	return v <= n.Threshold
}

// category returns which of n categories a number from 0 to 1 stands for.
func category(u float64, n int) int {
	return int(math.Min(math.Max(u*float64(n), 0), float64(n-1)))
}
