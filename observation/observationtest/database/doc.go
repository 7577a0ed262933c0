// SPDX-License-Identifier: Apache-2.0

// Package database lends tests a real PostgreSQL or MariaDB server.
//
// A server runs on a free loopback port with its data in a directory of its
// own, as a user without rights where the test is root, and ends with the test
// process, however that ends. Tests of several processes share the server of
// the first, which they find in the environment.
//
// Servers write each commit to the system before they confirm it, but do not wait
// for the disk: what they confirmed survives their being killed, and tests are
// quicker.
//
// Where its programs are not installed, tests are skipped with a text that says
// what to install; where the environment variable CI is true, they fail.
package database
