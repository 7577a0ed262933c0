// SPDX-License-Identifier: Apache-2.0

// Package typo suggests corrections for misspelled names.
//
// [Nearest] picks the closest of some names by edit distance, and none if all
// are far off: a wrong guess is worse than none. [Field] does so among the
// JSON fields of a Go type at a path.
package typo
