// SPDX-License-Identifier: Apache-2.0

// Package flock locks files and directories that others may remove meanwhile.
package flock
