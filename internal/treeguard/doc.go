// SPDX-License-Identifier: Apache-2.0

// Package treeguard has the tests of repository rules: every package teaches its
// model in a package document, every exported name is documented, imports go one
// way, licences are known. It has no code of its own.
package treeguard
