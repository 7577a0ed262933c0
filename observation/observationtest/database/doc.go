// SPDX-License-Identifier: Apache-2.0

// Package database provides tests with a real PostgreSQL or MariaDB server.
//
// A server runs on a free loopback port with its own data directory, as an
// unprivileged user if the test is root, and ends with the test process, however
// that ends. Tests in several processes share the first one's server, which they
// find in the environment.
//
// Servers write each commit to the operating system before they confirm it, but
// do not sync the disk: confirmed commits survive a kill of the server, and tests
// are faster.
//
// If its programs are not installed, tests are skipped with a message that says
// what to install; if the environment variable CI is true, they fail.
package database
