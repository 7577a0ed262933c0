// SPDX-License-Identifier: Apache-2.0

// Package peer runs Python programs that speak JSON lines: other optimisers,
// and the process that trains models.
//
// Each program has an [Environment] of its own, a virtual environment made once
// from a list of requirements, because the libraries want different versions of
// the same packages. A [Process] answers one request at a time; a request that
// outlasts its context ends the process.
package peer
