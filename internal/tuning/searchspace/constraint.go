// SPDX-License-Identifier: Apache-2.0

package searchspace

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"

	"diwan.dev/diwan/optimize"
)

const (
	// longestConstraint bounds the text of a constraint, in bytes, and
	// greatestConstraint the nodes of its syntax tree: a constraint is
	// evaluated thousands of times for one suggestion.
	longestConstraint  = 4096
	greatestConstraint = 500
)

// functions are what constraints may call. None of them loops, so that the
// time of an evaluation is bounded by the length of the text.
var functions = []string{"abs", "ceil", "floor", "round", "int", "float", "max", "min", "len"}

// constraint returns the constraint that an expression over some parameters
// states: numbers are numbers, and values of categorical parameters texts. It
// holds in points that lack a parameter which it mentions. One whose name is
// no identifier is written $env["its-name"].
func constraint(text string, parameters []optimize.Parameter) (optimize.Constraint, error) {
	if len(text) > longestConstraint {
		return optimize.Constraint{}, fmt.Errorf("it has %d bytes: want at most %d", len(text), longestConstraint)
	}
	environment := make(map[string]any, len(parameters))
	kinds := make(map[string]optimize.Kind, len(parameters))
	for _, p := range parameters {
		environment[p.Name], kinds[p.Name] = zero(p.Kind), p.Kind
	}
	options := []expr.Option{
		expr.Env(environment), expr.AsBool(), expr.MaxNodes(greatestConstraint), expr.DisableAllBuiltins(), expr.Optimize(false),
	}
	for _, name := range functions {
		options = append(options, expr.EnableBuiltin(name))
	}
	program, err := expr.Compile(text, options...)
	if err != nil {
		return optimize.Constraint{}, err
	}
	names, err := mentionedIn(program.Node(), kinds)
	if err != nil {
		return optimize.Constraint{}, err
	}
	holds := func(p optimize.Point) bool {
		values := make(map[string]any, len(names))
		for _, name := range names {
			if !p.Active(name) {
				return true
			}
			values[name] = valueOf(p, name, kinds[name])
		}
		return evaluate(program, values)
	}
	return optimize.Constraint{Name: text, Holds: holds}, nil
}

// evaluate reports whether an expression is true. One that fails, as by a
// division by zero, is not.
func evaluate(program *vm.Program, values map[string]any) bool {
	result, err := expr.Run(program, values)
	held, ok := result.(bool)
	return err == nil && ok && held
}

// zero is a value of the type that a parameter has in expressions.
func zero(k optimize.Kind) any {
	switch k {
	case optimize.KindInt:
		return 0
	case optimize.KindDouble, optimize.KindDiscrete:
		return 0.0
	}
	return ""
}

func valueOf(p optimize.Point, name string, k optimize.Kind) any {
	switch k {
	case optimize.KindInt:
		return p.Int(name)
	case optimize.KindDouble, optimize.KindDiscrete:
		return p.Float(name)
	}
	return p.Text(name)
}

// mentionedIn returns the parameters that an expression names, sorted.
func mentionedIn(root ast.Node, known map[string]optimize.Kind) ([]string, error) {
	m := mentions{known: known, found: map[string]bool{}}
	ast.Walk(&root, &m)
	switch {
	case m.loops:
		return nil, errors.New("it has a loop or a range (..): compare with <= and >= instead")
	case m.environments > m.fixed:
		return nil, errors.New(`it uses $env without a name: write $env["name"]`)
	case len(m.found) == 0:
		return nil, errors.New("it refers to no parameter")
	}
	return slices.Sorted(maps.Keys(m.found)), nil
}

// mentions is what is found in an expression.
type mentions struct {
	known               map[string]optimize.Kind
	found               map[string]bool
	environments, fixed int // $env, and $env["name"]
	loops               bool
}

// Visit implements ast.Visitor.
func (m *mentions) Visit(node *ast.Node) {
	name := ""
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if name = n.Value; name == "$env" {
			m.environments++
		}
	case *ast.MemberNode:
		of, isName := n.Node.(*ast.IdentifierNode)
		property, isText := n.Property.(*ast.StringNode)
		if isName && isText && of.Value == "$env" {
			m.fixed++
			name = property.Value
		}
	case *ast.PredicateNode:
		m.loops = true
	case *ast.BinaryNode:
		m.loops = m.loops || n.Operator == ".."
	}
	if _, ok := m.known[name]; ok {
		m.found[name] = true
	}
}
