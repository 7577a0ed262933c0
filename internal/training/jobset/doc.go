// SPDX-License-Identifier: Apache-2.0

// Package jobset reconciles JobSets: it creates the Jobs of each set in order,
// restarts them by the set's failure policy, and completes the set by its
// success policy.
//
//	JobSet ─▶ Service, claims ─▶ Jobs, each when what it depends on has come
//	Job failed ─▶ the set fails, or status.restarts grows
//	            ─▶ Jobs of an earlier attempt are deleted and recreated
//	Jobs succeeded ─▶ Completed; what still runs is deleted
//
// [Decide] is a pure function from a set, its Jobs and the time to a [Plan]. An
// attempt is counted by the single status write that starts it; each Job is
// labeled with its attempt, so that the API shows which Jobs are obsolete, and
// nothing is counted twice.
//
// A cluster with JobSet keeps its own controller; then this one is not set up.
package jobset
