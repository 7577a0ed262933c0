// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// ForAlgorithm returns the parameters of a space as an algorithm with some
// settings takes them, which are not always quite what the user declared: Katib
// ignores the range of the parameter that is a resource, and its examples have
// one of a single value there. Where that parameter is a double or int whose
// range is a single value or ends below r_l, it becomes one from r_min, or 1, to r_l, or from where
// it begins, if that is lower. Settings that are wrong change nothing; New says
// so.
func ForAlgorithm(name string, values map[string]string, parameters []Parameter) []Parameter {
	if m, err := find(name); err != nil || !slices.Contains(m.settings, "r_l") {
		return parameters
	}
	number := func(setting string, byDefault float64) float64 {
		v, err := strconv.ParseFloat(strings.TrimSpace(values[setting]), 64)
		if err != nil || !(v > 0) || v > maxInt {
			return byDefault
		}
		return v
	}
	most := number("r_l", 0)
	i := slices.IndexFunc(parameters, func(p Parameter) bool { return p.Name == values["resource_name"] })
	if i < 0 || most == 0 || (parameters[i].Kind != KindInt && parameters[i].Kind != KindDouble) {
		return parameters
	}
	parameters = slices.Clone(parameters)
	p := &parameters[i]
	if p.Min < p.Max && p.Max >= most {
		return parameters
	}
	least := number("r_min", math.Min(1, most))
	if p.Kind == KindInt {
		most, least = math.Floor(most), math.Floor(least)
	}
	p.Min, p.Max = math.Min(p.Min, least), math.Max(most, p.Max)
	if p.Distribution == Normal || p.Distribution == LogNormal {
		p.Distribution = Uniform // the range was its mean and deviation
	}
	return parameters
}
