// SPDX-License-Identifier: Apache-2.0

// Package model reconciles Models: it adopts their versions, says which aliases each
// of them has, and deletes those that are not kept.
package model
