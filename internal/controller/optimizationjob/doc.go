// SPDX-License-Identifier: Apache-2.0

// Package optimizationjob reconciles OptimizationJobs: each becomes an Experiment
// of its name, whose trials are TrainJobs, and shows what that comes to.
//
//	OptimizationJob ─▶ Experiment ─▶ Trials ─▶ TrainJobs, which are kept
//	Experiment      ─▶ Created, Complete or Failed, and the best TrainJob
//
// So an OptimizationJob has the search, the metrics and the durability of
// Experiments, and nothing of its own to lose. A TrainJob finds its parameters in
// the variables KUBEFLOW_TRAINER_OPT_<NAME>; its annotations have them too.
package optimizationjob
