// SPDX-License-Identifier: Apache-2.0

// Package jobset reconciles JobSets: it makes the Jobs of each set in their
// order, restarts them by the set's failure policy, and ends the set when its
// success policy says so.
//
//	JobSet ─▶ Service, claims ─▶ Jobs, each when what it depends on has come
//	Job failed ─▶ the set fails, or status.restarts grows
//	            ─▶ Jobs of an earlier attempt are deleted and made anew
//	Jobs succeeded ─▶ Completed; what still runs is deleted
//
// [Decide] is a pure function from a set, its Jobs and the time to a [Plan]. An
// attempt is counted by the one status write that begins it; each Job bears the
// number of its attempt, so that whoever reads the API knows which Jobs are to
// go, and nothing is counted twice.
//
// A cluster that has JobSet itself keeps its own controller; then this one is
// not set up.
package jobset
