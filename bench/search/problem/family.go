// SPDX-License-Identifier: Apache-2.0

package problem

// Families are the names of the families.
var Families = []string{"bbob", "mixed", "noisy", "model", "anchor"}

// Family returns the problems of a family: those of some dimensions where it
// has them, and of n instances from first on. The anchors have one instance.
// The models need an evaluator. An unknown family has none.
func Family(name string, dims []int, first, n int, models Evaluator) (problems []*Problem) {
	if name == "anchor" {
		return Anchors()
	}
	for instance := first; instance < first+n; instance++ {
		switch name {
		case "mixed":
			problems = append(problems, Mixed(instance)...)
		case "model":
			problems = append(problems, Models(models, instance)...)
		}
		for _, d := range dims {
			switch name {
			case "bbob":
				for f := range BBOBFunctions {
					problems = append(problems, BBOB(f+1, d, instance))
				}
			case "noisy":
				problems = append(problems, Noisy(d, instance)...)
			}
		}
	}
	return problems
}
