// SPDX-License-Identifier: Apache-2.0

// Package optimizationjob reconciles OptimizationJobs: each becomes an Experiment
// of the same name, whose trials are TrainJobs, and mirrors its result.
//
//	OptimizationJob ─▶ Experiment ─▶ Trials ─▶ TrainJobs, which are kept
//	Experiment      ─▶ Created, Complete or Failed, and the best TrainJob
//
// So an OptimizationJob has the search, the metrics and the durability of
// Experiments, and no state of its own. A TrainJob gets its parameters in the
// variables KUBEFLOW_TRAINER_OPT_<NAME> and in annotations.
package optimizationjob
