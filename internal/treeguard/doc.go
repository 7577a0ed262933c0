// SPDX-License-Identifier: Apache-2.0

// Package treeguard holds the tests that keep the source tree in order: every
// package teaches its model in a package document, every exported name is
// documented, imports go one way, licences are known. It has no code of its own.
package treeguard
