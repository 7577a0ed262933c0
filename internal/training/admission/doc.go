// SPDX-License-Identifier: Apache-2.0

// Package admission answers the API server's questions about jobs: the defaults of
// TrainJobs and JobSets, and whether an object may be written. The rules themselves
// are in the packages of the types and in trainingruntime; here they only meet the
// wire.
package admission
