// SPDX-License-Identifier: Apache-2.0

package onnx

import (
	"io"
	"slices"
)

// Model is a ModelProto.
type Model struct {
	// IRVersion is the version of the format.
	IRVersion int64
	Opsets    []Opset
	Graph     *Graph

	other []byte // the fields that are not above, as they were read
}

// Opset says which version of a domain's operators the model uses. The domain "" is ONNX's own.
type Opset struct {
	Domain  string
	Version int64
}

// Graph is a GraphProto. Nodes are sorted: each follows those whose outputs it uses.
type Graph struct {
	Nodes        []*Node
	Initializers []*Tensor
	Inputs       []*ValueInfo
	Outputs      []*ValueInfo
	// ValueInfos describe values between nodes. Most models have none.
	ValueInfos []*ValueInfo

	// sparse are the names of sparse initializers, whose messages are in other.
	sparse []string
	other  []byte
}

// Node is a NodeProto. An empty input or output is an optional one that is not there.
type Node struct {
	Name       string
	Domain, Op string
	Inputs     []string
	Outputs    []string
	Attributes []Attribute

	other []byte
}

// ValueInfo is a ValueInfoProto: the name of a value with its type.
type ValueInfo struct {
	Name string
	// Type is the type of the elements, Undefined if the value is not a dense tensor.
	Type DataType

	raw []byte
}

// Tensor is a TensorProto.
type Tensor struct {
	Name string
	Type DataType
	// Dims is the shape; a scalar has none.
	Dims []int64
	// Values are the elements in row-major order, little-endian. They are nil for
	// strings and for tensors that keep their elements in the integer fields of the
	// message: these are written as they were read.
	Values Values

	other []byte
}

// Values are the bytes of a tensor. WriteTo can be called any number of times.
type Values interface {
	Size() int64
	io.WriterTo
}

// Bytes are values in memory.
type Bytes []byte

// Size is the number of bytes.
func (b Bytes) Size() int64 { return int64(len(b)) }

// WriteTo writes the bytes.
func (b Bytes) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(b)
	return int64(n), err
}

// Elements is the number of elements of the tensor.
func (t *Tensor) Elements() int64 {
	n := int64(1)
	for _, dim := range t.Dims {
		n *= dim
	}
	return n
}

// Version is the version of a domain's operators, 0 if the model does not use it.
func (m *Model) Version(domain string) int64 {
	for _, o := range m.Opsets {
		if sameDomain(o.Domain, domain) {
			return o.Version
		}
	}
	return 0
}

// SetVersion sets the version of a domain's operators.
func (m *Model) SetVersion(domain string, version int64) {
	for i, o := range m.Opsets {
		if sameDomain(o.Domain, domain) {
			m.Opsets[i].Version = version
			return
		}
	}
	m.Opsets = append(m.Opsets, Opset{domain, version})
}

func sameDomain(a, b string) bool {
	own := func(domain string) bool { return domain == "" || domain == "ai.onnx" }
	return a == b || own(a) && own(b)
}

// Clone returns a copy whose lists, nodes and tensors can be changed; values are shared.
func (m *Model) Clone() *Model {
	c := *m
	c.Opsets = slices.Clone(m.Opsets)
	g := *m.Graph
	c.Graph = &g
	g.Nodes = make([]*Node, len(m.Graph.Nodes))
	for i, n := range m.Graph.Nodes {
		n := *n
		n.Inputs, n.Outputs, n.Attributes = slices.Clone(n.Inputs), slices.Clone(n.Outputs), slices.Clone(n.Attributes)
		g.Nodes[i] = &n
	}
	g.Initializers = make([]*Tensor, len(m.Graph.Initializers))
	for i, t := range m.Graph.Initializers {
		t := *t
		t.Dims = slices.Clone(t.Dims)
		g.Initializers[i] = &t
	}
	g.Inputs, g.Outputs, g.ValueInfos = slices.Clone(g.Inputs), slices.Clone(g.Outputs), slices.Clone(g.ValueInfos)
	return &c
}

// Is says whether the node is an operator of ONNX's own domain.
func (n *Node) Is(op string) bool { return n.Op == op && sameDomain(n.Domain, "") }

// Attribute is the attribute of that name, nil if the node does not have it.
func (n *Node) Attribute(name string) *Attribute {
	for i := range n.Attributes {
		if n.Attributes[i].Name == name {
			return &n.Attributes[i]
		}
	}
	return nil
}

// Int is an attribute's number, or what it is by default.
func (n *Node) Int(name string, byDefault int64) int64 {
	if a := n.Attribute(name); a != nil {
		return a.Int
	}
	return byDefault
}

// Float is an attribute's number, or what it is by default.
func (n *Node) Float(name string, byDefault float32) float32 {
	if a := n.Attribute(name); a != nil {
		return a.Float
	}
	return byDefault
}

// Remove removes an attribute.
func (n *Node) Remove(name string) {
	n.Attributes = slices.DeleteFunc(n.Attributes, func(a Attribute) bool { return a.Name == name })
}

// Attribute is an AttributeProto of a node.
type Attribute struct {
	Name  string
	Int   int64
	Float float32
	Ints  []int64
	// Tensor is a constant, its values in memory.
	Tensor *Tensor
	// Graphs are the bodies of a loop or of a condition, to be looked at, not changed.
	Graphs []*Graph

	raw []byte
}

// Names calls visit with every name that the graph has or uses, also those in the graphs of its nodes.
func (g *Graph) Names(visit func(string)) {
	for _, list := range [][]*ValueInfo{g.Inputs, g.Outputs, g.ValueInfos} {
		for _, v := range list {
			visit(v.Name)
		}
	}
	for _, t := range g.Initializers {
		visit(t.Name)
	}
	for _, name := range g.sparse {
		visit(name)
	}
	for _, n := range g.Nodes {
		for _, name := range slices.Concat(n.Inputs, n.Outputs) {
			visit(name)
		}
		n.Inner(visit)
	}
}

// Inner calls visit with every name in the graphs of the node, among them the values of the
// outer graph that they use.
func (n *Node) Inner(visit func(string)) {
	for _, a := range n.Attributes {
		for _, g := range a.Graphs {
			g.Names(visit)
		}
	}
}
