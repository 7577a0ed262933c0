// SPDX-License-Identifier: Apache-2.0

// Package durable has what stores in directories are made of: files that appear whole and stay after a
// crash, and locks between processes that end with their holder.
package durable
