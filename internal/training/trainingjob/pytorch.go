// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// PyTorch is the Framework of PyTorchJobs: DistributedDataParallel by the
// variables of torch.distributed, and torchrun by those that begin with PET_.
type PyTorch struct {
	plain

	// InitImage is the image of containers that wait for the master. Default:
	// DefaultInitImage.
	InitImage string
}

// DefaultInitImage is the image with which the training operator's workers wait for their
// master.
const DefaultInitImage = "alpine:3.10"

// New implements Framework.
func (PyTorch) New() v1.Job { return &v1.PyTorchJob{} }

// Lead implements Framework.
func (PyTorch) Lead(job v1.Job) v1.ReplicaType { return first(job, v1.Master, v1.Worker) }

// Master implements Framework: the master, or worker 0.
func (f PyTorch) Master(job v1.Job, r Replica) bool {
	return r.Type == f.Lead(job) && (r.Type == v1.Master || r.Index == 0)
}

// Done implements Framework. The workers of torchrun end together, so for an
// elastic job without a master one is enough.
func (f PyTorch) Done(job v1.Job, pods map[Replica]*corev1.Pod) bool {
	lead := f.Lead(job)
	elastic := job.(*v1.PyTorchJob).Spec.ElasticPolicy != nil
	return allSucceeded(job, lead, pods) || elastic && lead == v1.Worker && succeeded(lead, pods) > 0
}

// InStep implements Framework.
func (PyTorch) InStep(v1.Job) bool { return true }

// Connect implements Framework.
func (f PyTorch) Connect(job v1.Job, r Replica, pod *corev1.PodTemplateSpec) {
	j := job.(*v1.PyTorchJob)
	vars := []corev1.EnvVar{unbuffered}
	master := v1.ReplicaName(j.Name, v1.Master, 0)
	if spec := j.Spec.PyTorchReplicaSpecs[v1.Master]; spec != nil {
		port := strconv.Itoa(int(j.Traits().ListensOn(spec)))
		rank := strconv.Itoa(rankAfterMaster(job, r))
		vars = append(vars,
			corev1.EnvVar{Name: "MASTER_PORT", Value: port},
			corev1.EnvVar{Name: "PET_MASTER_PORT", Value: port},
			corev1.EnvVar{Name: "MASTER_ADDR", Value: master},
			corev1.EnvVar{Name: "PET_MASTER_ADDR", Value: master},
			corev1.EnvVar{Name: "WORLD_SIZE", Value: strconv.Itoa(total(job) * processes(j))},
			corev1.EnvVar{Name: "RANK", Value: rank},
			corev1.EnvVar{Name: "PET_NODE_RANK", Value: rank})
		if r.Type == v1.Worker {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, waitForName(cmp.Or(f.InitImage, DefaultInitImage), master))
		}
	}
	if n := j.Spec.NprocPerNode; n != nil {
		vars = append(vars, corev1.EnvVar{Name: "PET_NPROC_PER_NODE", Value: *n})
	}
	if j.Spec.ElasticPolicy != nil {
		vars = append(vars, rendezvous(j)...)
	} else {
		vars = append(vars, corev1.EnvVar{Name: "PET_NNODES", Value: strconv.Itoa(total(job))})
	}
	addEnv(&pod.Spec, vars)
}

// rankAfterMaster numbers masters first, then workers.
func rankAfterMaster(job v1.Job, r Replica) int {
	if m := job.Replicas()[v1.Master]; m != nil && r.Type == v1.Worker {
		return r.Index + int(*m.Replicas)
	}
	return r.Index
}

// processes is how many processes a replica has, as far as it is known here.
func processes(j *v1.PyTorchJob) int {
	if n := j.Spec.NprocPerNode; n != nil {
		if count, err := strconv.Atoi(*n); err == nil {
			return count
		}
	}
	return 1
}

// rendezvous is how the workers of an elastic job find each other.
func rendezvous(j *v1.PyTorchJob) []corev1.EnvVar {
	e := j.Spec.ElasticPolicy
	host, port, backend := v1.ReplicaName(j.Name, v1.Worker, 0), j.Traits().ListensOn(j.Spec.PyTorchReplicaSpecs[v1.Worker]), v1.BackendC10D
	if e.RDZVHost != nil {
		host = *e.RDZVHost
	}
	if e.RDZVPort != nil {
		port = *e.RDZVPort
	}
	if e.RDZVBackend != nil {
		backend = *e.RDZVBackend
	}
	vars := []corev1.EnvVar{
		{Name: "PET_RDZV_ENDPOINT", Value: fmt.Sprintf("%s:%d", host, port)},
		{Name: "PET_RDZV_BACKEND", Value: string(cmp.Or(backend, v1.BackendC10D))},
		{Name: "PET_NNODES", Value: fmt.Sprintf("%d:%d", *e.MinReplicas, *e.MaxReplicas)},
	}
	if e.MaxRestarts != nil {
		vars = append(vars, corev1.EnvVar{Name: "PET_MAX_RESTARTS", Value: strconv.Itoa(int(*e.MaxRestarts))})
	}
	if n := e.NProcPerNode; n != nil {
		vars = append(vars, corev1.EnvVar{Name: "PET_NPROC_PER_NODE", Value: strconv.Itoa(int(*n))})
	}
	if e.RDZVID != nil {
		vars = append(vars, corev1.EnvVar{Name: "PET_RDZV_ID", Value: *e.RDZVID})
	}
	if len(e.RDZVConf) > 0 {
		settings := make([]string, len(e.RDZVConf))
		for i, c := range e.RDZVConf {
			settings[i] = c.Key + "=" + c.Value
		}
		vars = append(vars, corev1.EnvVar{Name: "PET_RDZV_CONF", Value: strings.Join(settings, ",")})
	}
	if e.Standalone != nil && *e.Standalone {
		vars = append(vars, corev1.EnvVar{Name: "PET_STANDALONE"})
	}
	return vars
}

// waitForName is a container that ends when a name can be looked up, which takes
// some time after the Pod of that name has begun, and fails after 200 s. A name
// is looked for where programs do, and in the DNS. The image needs sh, and getent or
// nslookup.
func waitForName(image, name string) corev1.Container {
	amounts := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	return corev1.Container{
		Name:            "init-pytorch",
		Image:           image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Resources:       corev1.ResourceRequirements{Limits: amounts("100m", "20Mi"), Requests: amounts("50m", "10Mi")},
		Command: []string{"sh", "-c", fmt.Sprintf(
			"for i in $(seq 1000); do if getent hosts %[1]s >/dev/null 2>&1 || nslookup %[1]s >/dev/null 2>&1; then exit 0; fi; [ $((i %% 10)) = 1 ] && echo waiting for master; sleep 0.2; done; exit 1", name)},
	}
}
