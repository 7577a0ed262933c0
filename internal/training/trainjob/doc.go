// SPDX-License-Identifier: Apache-2.0

// Package trainjob reconciles TrainJobs: it creates the JobSet that does the
// training, from the job's runtime, and reports its state in the job's status.
//
//	TrainJob ─▶ snapshot of its runtime ─▶ JobSet, keys, host file, PodGroup
//	JobSet   ─▶ Complete or Failed, and counts of its Jobs
//	deadline ─▶ Failed, then the JobSet is deleted
//
// The runtime is copied to a ConfigMap when the job starts, so that later edits
// of the runtime do not change existing jobs. [Decide] is a pure function from a
// job, its JobSet and the time to a [Plan]. A JobSet with a TTL is held by a
// finalizer until the job has recorded its result: a job never runs twice because
// its JobSet was deleted too early.
package trainjob
