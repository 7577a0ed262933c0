// SPDX-License-Identifier: Apache-2.0

// Package remotestore is an observation store that is reached by gRPC: the one
// of a DBManager, for collectors that run in the Pods of trials.
//
// A call that gets no answer may have been carried out. The store remembers
// such a batch, and when the same source goes on, sends it again first: what
// was stored is not stored twice, and callers need not know.
package remotestore
