// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Labels on trials and their Pods.
const (
	// LabelExperiment names the experiment, on suggestions, trials and Pods.
	LabelExperiment = "katib.kubeflow.org/experiment"
	// LabelSuggestion names the suggestion, on the objects that serve it.
	LabelSuggestion = "katib.kubeflow.org/suggestion"
	// LabelTrial names the trial, on its Pods. The metrics collector uses it
	// to map a container's output to its trial.
	LabelTrial = "katib.kubeflow.org/trial"
	// LabelDeployment names the deployment that serves a suggestion.
	LabelDeployment = "katib.kubeflow.org/deployment"
	// LabelComponent with the value ComponentTrialTemplates marks the
	// ConfigMaps with trial templates.
	LabelComponent = "katib.kubeflow.org/component"
	// LabelMetricsCollectorInjection, on a namespace with the value "enabled",
	// lets Pods of trials there be changed so that their metrics are collected.
	LabelMetricsCollectorInjection = "katib.kubeflow.org/metrics-collector-injection"

	// ComponentTrialTemplates is the value of LabelComponent on ConfigMaps of
	// trial templates.
	ComponentTrialTemplates = "trial-templates"
)

// Annotations of this implementation.
const (
	// AnnotationTrialIndex, on a trial, is the decimal index of its
	// suggestion, from 0.
	AnnotationTrialIndex = "diwan.dev/trial-index"
	// AnnotationAttempt, on a trial's run object, is the decimal number of runs
	// of the trial that failed before it. Without it, none did.
	AnnotationAttempt = "diwan.dev/attempt"
	// AnnotationSuspended, on a trial's run object, marks it as suspended
	// because its experiment is.
	AnnotationSuspended = "diwan.dev/suspended"
	// AnnotationWorkingDirectory, on a Pod, is the absolute directory in which
	// containers without a workingDir start on a node that runs processes.
	AnnotationWorkingDirectory = "diwan.dev/working-directory"
)

// Finalizers of Katib.
const (
	// FinalizerPrometheus holds an object until its counters are updated.
	// Objects created by Katib have it and must be released; nothing here sets
	// it.
	FinalizerPrometheus = "update-prometheus-metrics"
	// FinalizerCleanMetrics holds a trial until its metrics are deleted from
	// the observation store.
	FinalizerCleanMetrics = "clean-metrics-in-db"
)

// EnvTrialName is the environment variable with the name of the program's
// trial.
const EnvTrialName = "KATIB_TRIAL_NAME"

// UnavailableMetricValue stands for a metric without a value, or without a
// numeric one.
const UnavailableMetricValue = "unavailable"

// Reasons of an experiment's conditions.
const (
	ReasonExperimentCreated              = "ExperimentCreated"
	ReasonExperimentRunning              = "ExperimentRunning"
	ReasonExperimentRestarting           = "ExperimentRestarting"
	ReasonExperimentGoalReached          = "ExperimentGoalReached"
	ReasonExperimentMaxTrialsReached     = "ExperimentMaxTrialsReached"
	ReasonExperimentSuggestionEndReached = "ExperimentSuggestionEndReached"
	ReasonExperimentFailed               = "ExperimentFailed"

	// Those below are not in Katib.
	ReasonExperimentSuspended        = "ExperimentSuspended"
	ReasonExperimentTimeLimitReached = "ExperimentTimeLimitReached"
	ReasonExperimentQuotaExceeded    = "ExperimentQuotaExceeded"
)

// Reasons of a suggestion's conditions.
const (
	ReasonSuggestionCreated            = "SuggestionCreated"
	ReasonSuggestionDeploymentReady    = "DeploymentReady"
	ReasonSuggestionDeploymentNotReady = "DeploymentNotReady"
	ReasonSuggestionRunning            = "SuggestionRunning"
	ReasonSuggestionFailed             = "SuggestionFailed"
	// ReasonSuggestionRestarting contains spaces, as in Katib.
	ReasonSuggestionRestarting = "Experiment is restarting"
)

// Reasons of a trial's conditions.
const (
	ReasonTrialCreated      = "TrialCreated"
	ReasonTrialRunning      = "TrialRunning"
	ReasonTrialSucceeded    = "TrialSucceeded"
	ReasonTrialFailed       = "TrialFailed"
	ReasonTrialEarlyStopped = "TrialEarlyStopped"
	// ReasonTrialStopping is the reason of the condition EarlyStopped, Killed or
	// Failed with the status False: the trial is to end with that condition, and
	// its run is ending.
	ReasonTrialStopping      = "TrialStopping"
	ReasonMetricsUnavailable = "MetricsUnavailable"
	// These are not in Katib.
	ReasonTrialKilled            = "TrialKilled"
	ReasonTrialTimeLimitExceeded = "TrialTimeLimitExceeded"
	// These are reasons of the condition Running with the status False, of a
	// waiting trial: for the kind of its run object to be defined, for
	// permission to handle it, for room in the namespace's quota, for another
	// API server rule to admit it, for its experiment to resume, and for its
	// next run.
	ReasonRunKindMissing       = "RunKindMissing"
	ReasonRunPermissionMissing = "RunPermissionMissing"
	ReasonRunQuotaExceeded     = "RunQuotaExceeded"
	ReasonRunForbidden         = "RunForbidden"
	ReasonTrialSuspended       = "TrialSuspended"
	ReasonTrialRetrying        = "TrialRetrying"
)

// Reasons of events on a trial about its run object.
const (
	ReasonJobCreated     = "JobCreated"
	ReasonJobDeleted     = "JobDeleted"
	ReasonJobSucceeded   = "JobSucceeded"
	ReasonJobFailed      = "JobFailed"
	ReasonJobRunning     = "JobRunning"
	ReasonReconcileError = "ReconcileError"
	// ReasonMetricsCollection is for problems with a trial's metrics.
	ReasonMetricsCollection = "MetricsCollection"
)
