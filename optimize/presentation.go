// SPDX-License-Identifier: Apache-2.0

package optimize

// Presentation says how the points of a space are shown as assignments, where
// that is not one for each parameter: an architecture as one JSON text, for
// example. Either function may be nil: then nothing is changed that way.
type Presentation struct {
	// Write returns what is shown for one assignment for each parameter.
	Write func(plain []Assignment) []Assignment
	// Read returns the assignments for which Write returns those shown. Its
	// error says what is wrong with them.
	Read func(shown []Assignment) ([]Assignment, error)
}

// Presented returns the space with a presentation of its points.
func (s *Space) Presented(p Presentation) *Space {
	presented := *s
	presented.shown = p
	return &presented
}
