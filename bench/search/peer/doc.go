// SPDX-License-Identifier: Apache-2.0

// Package peer runs Python programs that communicate in JSON Lines: other
// optimizers, and the process that trains models.
//
// Each program has its own [Environment], a virtual environment created once
// from a list of requirements, because the libraries need different versions of
// the same packages. A [Process] handles one request at a time; a request that
// exceeds its context terminates the process.
package peer
