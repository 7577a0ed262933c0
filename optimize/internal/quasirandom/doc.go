// SPDX-License-Identifier: Apache-2.0

// Package quasirandom is low-discrepancy sequences: points that fill the unit
// cube more evenly than random ones do.
package quasirandom
