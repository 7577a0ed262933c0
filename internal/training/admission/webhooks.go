// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	jobset "diwan.dev/diwan/api/jobset/v1alpha2"
	v1 "diwan.dev/diwan/api/kubeflow/v1"
	"diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/platform/admission"
)

// Paths on which the API server asks about training by TrainJobs; they are
// Kubeflow Trainer's and JobSet's.
const (
	PathMutateTrainJob                 = "/mutate-trainer-kubeflow-org-v1alpha1-trainjob"
	PathValidateTrainJob               = "/validate-trainer-kubeflow-org-v1alpha1-trainjob"
	PathValidateTrainingRuntime        = "/validate-trainer-kubeflow-org-v1alpha1-trainingruntime"
	PathValidateClusterTrainingRuntime = "/validate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime"
	PathMutateJobSet                   = "/mutate-jobset-x-k8s-io-v1alpha2-jobset"
	PathValidateJobSet                 = "/validate-jobset-x-k8s-io-v1alpha2-jobset"
)

// pathValidateJob is where the API server asks about a kind of training job, as
// with the training operator.
func pathValidateJob(kind string) string {
	return "/validate-kubeflow-org-v1-" + strings.ToLower(kind)
}

// Config is what the answers depend on.
type Config struct {
	// Known says that who asks is known to be the API server. Otherwise anyone may
	// ask, in any name, so that no answer tells what a namespace holds: that is
	// checked later, when it is used.
	Known bool
	// Reader reads the runtimes that TrainJobs name.
	Reader client.Reader
}

// Handlers returns the handler of each path.
func Handlers(c Config) map[string]ctrladmission.HandlerFunc {
	handlers := map[string]ctrladmission.HandlerFunc{
		PathMutateTrainJob:                 mutateTrainJob,
		PathValidateTrainJob:               c.validateTrainJob,
		PathValidateTrainingRuntime:        validateRuntime(func() client.Object { return &v1alpha1.TrainingRuntime{} }),
		PathValidateClusterTrainingRuntime: validateRuntime(func() client.Object { return &v1alpha1.ClusterTrainingRuntime{} }),
		PathMutateJobSet:                   mutateJobSet,
		PathValidateJobSet:                 validateJobSet,
	}
	for _, empty := range v1.Jobs() {
		handlers[pathValidateJob(empty.Traits().Kind)] = validateJob(empty)
	}
	return handlers
}

// Webhooks says when the API server asks. Runtimes are for TrainJobs, and are left
// to another controller with them.
func Webhooks() []admission.Webhook {
	const trainJobs, jobSets = "trainjobs", "jobsets"
	notByController := func(w admission.Webhook) admission.Webhook { w.NotByController = true; return w }
	without := func(name string, webhooks ...admission.Webhook) []admission.Webhook {
		for i := range webhooks {
			webhooks[i].Without = name
		}
		return webhooks
	}
	trainer, sets := v1alpha1.GroupVersion.WithResource, jobset.GroupVersion.WithResource
	webhooks := without(trainJobs,
		admission.Defaulter("defaulter.trainjob.trainer.kubeflow.org", PathMutateTrainJob, trainer(trainJobs)),
		admission.Validator("validator.trainjob.trainer.kubeflow.org", PathValidateTrainJob, trainer(trainJobs)),
		admission.Validator("validator.trainingruntime.trainer.kubeflow.org", PathValidateTrainingRuntime, trainer("trainingruntimes")),
		notByController(admission.Validator("validator.clustertrainingruntime.trainer.kubeflow.org", PathValidateClusterTrainingRuntime, trainer("clustertrainingruntimes"))))
	webhooks = append(webhooks, without(jobSets,
		notByController(admission.Defaulter("mjobset.kb.io", PathMutateJobSet, sets(jobSets))),
		notByController(admission.Validator("vjobset.kb.io", PathValidateJobSet, sets(jobSets))))...)
	for _, job := range v1.Jobs() {
		kind := job.Traits()
		webhooks = append(webhooks, without(kind.Plural, admission.Validator("validator."+strings.ToLower(kind.Kind)+".training-operator.kubeflow.org",
			pathValidateJob(kind.Kind), v1.GroupVersion.WithResource(kind.Plural)))...)
	}
	return webhooks
}
