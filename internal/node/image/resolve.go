// SPDX-License-Identifier: Apache-2.0

package image

// Resolver finds the meaning of an image. *Table implements it.
type Resolver interface {
	// Resolve returns the environment of the image. hasCommand says that the
	// container names its own command; without one, an image with no meaning or
	// no command is an *UnmappedError. It does no slow work: that is Prepare's.
	Resolve(image string, hasCommand bool) (*Environment, error)
}
