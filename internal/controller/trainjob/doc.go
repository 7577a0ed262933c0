// SPDX-License-Identifier: Apache-2.0

// Package trainjob reconciles TrainJobs: it makes the JobSet that does the
// training, as the job's runtime has it, and writes to the job how that goes.
//
//	TrainJob ─▶ snapshot of its runtime ─▶ JobSet, keys, host file, PodGroup
//	JobSet   ─▶ Complete or Failed, and counts of its Jobs
//	deadline ─▶ Failed, then the JobSet is deleted
//
// The runtime is copied to a ConfigMap when the job begins, so that whoever edits
// the runtime afterwards changes no job that is there. [Decide] is a pure
// function from a job, its JobSet and the time to a [Plan]. A JobSet that is to
// be deleted some time after its end is held by a finalizer until the job has
// taken its result: a job never runs twice because its JobSet was gone too soon.
package trainjob
