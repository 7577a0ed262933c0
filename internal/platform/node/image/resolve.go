// SPDX-License-Identifier: Apache-2.0

package image

// Resolver finds the meaning of an image. *Table implements it.
type Resolver interface {
	// Resolve returns the environment of the image. hasCommand says that the
	// container names its own command; without one, an image with no meaning is an
	// *UnmappedError. So is one with no command, unless argsRun: arguments that
	// begin with a program are the command then, as with an image that has no
	// entrypoint. It does no slow work: that is Prepare's.
	Resolve(image string, hasCommand, argsRun bool) (*Environment, error)
	// Entry returns the entry for an image; nil if it has none.
	Entry(image string) *Entry
}
