// SPDX-License-Identifier: Apache-2.0

// Package remotestore is an observation store accessed by gRPC: that of a
// DBManager, for collectors in the Pods of trials.
//
// A call without a response may have taken effect. The store remembers such a
// batch and sends it again before the next one from the same source: nothing
// is stored twice, and callers need not know.
package remotestore
