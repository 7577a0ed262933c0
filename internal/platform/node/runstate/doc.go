// SPDX-License-Identifier: Apache-2.0

// Package runstate keeps the state of runs in files, so that it does not depend on the node.
// See package process for the protocol.
package runstate
