// SPDX-License-Identifier: Apache-2.0

package nas

import (
	"errors"
	"fmt"

	"diwan.dev/diwan/optimize"
)

// Choice is an operation that a layer may be: a type and a value of each of
// its parameters.
type Choice struct {
	Type       string
	Parameters []Value
}

// Value is the value of a parameter of an operation.
type Value struct {
	Name, Text string
	// Number is set where the parameter is a double or an int.
	Number bool
}

// Choices returns the operations of a config, in the order that numbers them:
// by type as declared, and within a type as a nested loop over the values of
// its parameters goes, the last changing fastest. The error names the operation
// and what is wrong with it.
func (c Config) Choices() ([]Choice, error) {
	if len(c.Operations) == 0 {
		return nil, errors.New("operations are missing: want at least one type")
	}
	var choices []Choice
	var problems []error
	for i, operation := range c.Operations {
		expanded, err := operation.choices(MaxChoices - len(choices))
		if err != nil {
			problems = append(problems, fmt.Errorf("operation %d, %q: %w", i+1, operation.Type, err))
		}
		choices = append(choices, expanded...)
	}
	return choices, errors.Join(problems...)
}

// choices returns at most so many choices of one type.
func (o Operation) choices(most int) ([]Choice, error) {
	switch {
	case o.Type == "":
		return nil, errors.New("type is empty")
	case len(o.Parameters) == 0:
		return []Choice{{Type: o.Type}}, nil
	}
	space, err := optimize.NewSpace(o.Parameters...)
	if err != nil {
		return nil, err
	}
	for _, p := range o.Parameters {
		if p.Kind == optimize.KindDouble && p.Step == 0 && p.Min < p.Max {
			return nil, fmt.Errorf("parameter %q has no step: want one, so that its values are finite in number", p.Name)
		}
	}
	size, finite := space.Size()
	if !finite || size > uint64(most) {
		return nil, fmt.Errorf("there are too many combinations of its parameters: want at most %d of all operations", MaxChoices)
	}
	choices := make([]Choice, size)
	for n := range choices {
		choices[n].Type = o.Type
		for _, a := range space.At(uint64(n)).Assignments() {
			choices[n].Parameters = append(choices[n].Parameters, Value{Name: a.Name, Text: a.Value, Number: o.isNumber(a.Name)})
		}
	}
	return choices, nil
}

func (o Operation) isNumber(name string) bool {
	for _, p := range o.Parameters {
		if p.Name == name {
			return p.Kind == optimize.KindDouble || p.Kind == optimize.KindInt
		}
	}
	return false
}
