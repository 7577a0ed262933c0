// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Labels of runtimes and their templates.
const (
	// LabelAncestor, on a Job template of a runtime, says which part of a
	// TrainJob the template is for: AncestorTrainer, DatasetInitializer or
	// ModelInitializer.
	LabelAncestor = "trainer.kubeflow.org/trainjob-ancestor-step"
	// LabelFramework, on a runtime, names its framework to the SDK.
	LabelFramework = "trainer.kubeflow.org/framework"
	// LabelSupport, on a runtime, is "deprecated" for one that will be
	// removed.
	LabelSupport = "trainer.kubeflow.org/support"
	// SupportDeprecated is the value of LabelSupport that causes a warning.
	SupportDeprecated = "deprecated"
)

// Names that runtimes and TrainJobs agree on: of replicated jobs, of their
// containers, and values of LabelAncestor.
const (
	Node               = "node"
	Launcher           = "launcher"
	AncestorTrainer    = "trainer"
	DatasetInitializer = "dataset-initializer"
	ModelInitializer   = "model-initializer"
	// InitializerVolume is the volume that initializers write to.
	InitializerVolume = "initializer"
)

// DefaultManager is the value of managedBy that stands for the built-in
// controller; MultiKueue is the only other one that is allowed.
const (
	DefaultManager = "trainer.kubeflow.org/trainjob-controller"
	MultiKueue     = "kueue.x-k8s.io/multikueue"
)

// StatusPath is where the Pods of a TrainJob report its progress, by POST of
// an UpdateTrainJobStatusRequest.
func StatusPath(namespace, name string) string {
	return "/apis/" + statusOf(namespace, name)
}

// StatusAudience is the audience of the tokens with which they authenticate
// there.
func StatusAudience(namespace, name string) string {
	return statusOf(namespace, name)
}

func statusOf(namespace, name string) string {
	return GroupVersion.String() + "/namespaces/" + namespace + "/trainjobs/" + name + "/status"
}

// Variables with its address and what they need to use it.
const (
	EnvStatusURL         = "KUBEFLOW_TRAINER_SERVER_URL"
	EnvStatusCertificate = "KUBEFLOW_TRAINER_SERVER_CA_CERT"
	EnvStatusToken       = "KUBEFLOW_TRAINER_SERVER_TOKEN"
)

// Finalizer of a runtime that TrainJobs use.
const ResourceInUseFinalizer = "trainer.kubeflow.org/resource-in-use"

// The types and reasons of a TrainJob's conditions.
const (
	ConditionSuspended = "Suspended"
	ConditionComplete  = "Complete"
	ConditionFailed    = "Failed"

	ReasonSuspended           = "Suspended"
	ReasonResumed             = "Resumed"
	ReasonRuntimeNotSupported = "TrainingRuntimeNotSupported"
	ReasonDeadlineExceeded    = "DeadlineExceeded"
	// ReasonResourcesCreationFailed is the reason of the event about a TrainJob
	// whose objects cannot be created, and of the condition Failed if they
	// never can.
	ReasonResourcesCreationFailed = "TrainJobResourcesCreationFailed"
)
