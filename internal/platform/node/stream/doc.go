// SPDX-License-Identifier: Apache-2.0

// Package stream joins the standard files of a command with a client's streams.
package stream
