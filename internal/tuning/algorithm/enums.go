// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	kubeflow "diwan.dev/diwan/api/kubeflow/v1beta1"
	manager "diwan.dev/diwan/api/manager/v1beta1"
)

// Each table is read in both directions. What is not in it becomes the first
// entry, which stands for unknown.

type pair[A, B comparable] struct {
	object  A
	message B
}

func toMessage[A, B comparable](table []pair[A, B], a A) B {
	for _, p := range table {
		if p.object == a {
			return p.message
		}
	}
	return table[0].message
}

func toObject[A, B comparable](table []pair[A, B], b B) A {
	for _, p := range table {
		if p.message == b {
			return p.object
		}
	}
	return table[0].object
}

var objectiveTypes = []pair[kubeflow.ObjectiveType, manager.ObjectiveType]{
	{kubeflow.ObjectiveTypeUnknown, manager.ObjectiveType_UNKNOWN},
	{kubeflow.ObjectiveTypeMinimize, manager.ObjectiveType_MINIMIZE},
	{kubeflow.ObjectiveTypeMaximize, manager.ObjectiveType_MAXIMIZE},
}

var parameterTypes = []pair[kubeflow.ParameterType, manager.ParameterType]{
	{kubeflow.ParameterTypeUnknown, manager.ParameterType_UNKNOWN_TYPE},
	{kubeflow.ParameterTypeDouble, manager.ParameterType_DOUBLE},
	{kubeflow.ParameterTypeInt, manager.ParameterType_INT},
	{kubeflow.ParameterTypeDiscrete, manager.ParameterType_DISCRETE},
	{kubeflow.ParameterTypeCategorical, manager.ParameterType_CATEGORICAL},
}

var distributions = []pair[kubeflow.Distribution, manager.Distribution]{
	{"", manager.Distribution_DISTRIBUTION_UNSPECIFIED},
	{kubeflow.DistributionUniform, manager.Distribution_UNIFORM},
	{kubeflow.DistributionLogUniform, manager.Distribution_LOG_UNIFORM},
	{kubeflow.DistributionNormal, manager.Distribution_NORMAL},
	{kubeflow.DistributionLogNormal, manager.Distribution_LOG_NORMAL},
}

var conditions = []pair[kubeflow.ConditionType, manager.TrialStatus_TrialConditionType]{
	{"", manager.TrialStatus_UNKNOWN},
	{kubeflow.ConditionCreated, manager.TrialStatus_CREATED},
	{kubeflow.ConditionRunning, manager.TrialStatus_RUNNING},
	{kubeflow.ConditionSucceeded, manager.TrialStatus_SUCCEEDED},
	{kubeflow.ConditionKilled, manager.TrialStatus_KILLED},
	{kubeflow.ConditionFailed, manager.TrialStatus_FAILED},
	{kubeflow.ConditionMetricsUnavailable, manager.TrialStatus_METRICSUNAVAILABLE},
	{kubeflow.ConditionEarlyStopped, manager.TrialStatus_EARLYSTOPPED},
}

var comparisons = []pair[kubeflow.ComparisonType, manager.ComparisonType]{
	{"", manager.ComparisonType_UNKNOWN_COMPARISON},
	{kubeflow.ComparisonTypeEqual, manager.ComparisonType_EQUAL},
	{kubeflow.ComparisonTypeLess, manager.ComparisonType_LESS},
	{kubeflow.ComparisonTypeGreater, manager.ComparisonType_GREATER},
}
