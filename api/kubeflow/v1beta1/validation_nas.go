// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validate checks each operation and its parameters. What a search requires
// of the graph depends on the algorithm and is left to Algorithms.Check.
func (c *NasConfig) validate(path *field.Path) field.ErrorList {
	operations := path.Child("operations")
	if n := len(c.Operations); n == 0 {
		return field.ErrorList{field.Required(operations, "specify at least one operation for the layers")}
	} else if n > MaxParameters {
		return field.ErrorList{field.TooMany(operations, n, MaxParameters)}
	}
	var errs field.ErrorList
	if n := c.GraphConfig.NumLayers; n == nil || *n < 1 {
		errs = append(errs, field.Required(path.Child("graphConfig", "numLayers"), "specify the number of layers, at least 1"))
	}
	for i := range c.Operations {
		errs = append(errs, c.Operations[i].validate(operations.Index(i))...)
	}
	return errs
}

func (o *Operation) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if o.OperationType == "" {
		errs = append(errs, field.Required(path.Child("operationType"), "specify the operation type, for example convolution"))
	}
	parameters := path.Child("parameters")
	if n := len(o.Parameters); n > MaxParameters {
		return append(errs, field.TooMany(parameters, n, MaxParameters))
	}
	seen := make(map[string]bool, len(o.Parameters))
	for i := range o.Parameters {
		errs = append(errs, o.Parameters[i].validateIn(parameters.Index(i), seen)...)
		if o.Parameters[i].When != nil {
			errs = append(errs, field.Forbidden(parameters.Index(i).Child("when"), "parameters of operations cannot be conditional"))
		}
	}
	return errs
}

// validateIn checks a parameter in a list; seen are the names before it.
func (p *ParameterSpec) validateIn(path *field.Path, seen map[string]bool) field.ErrorList {
	var errs field.ErrorList
	switch {
	case p.Name == "":
		errs = append(errs, field.Required(path.Child("name"), "name the parameter"))
	case seen[p.Name]:
		errs = append(errs, field.Duplicate(path.Child("name"), shorten(p.Name)))
	}
	seen[p.Name] = true
	return append(errs, p.validate(path)...)
}
