// SPDX-License-Identifier: Apache-2.0

package trainingruntime

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/api/trainer/v1alpha1"
)

// port is where the first node listens for the others.
const port = 29500

// The variables by which frameworks find their nodes; jobs may not set them.
const (
	torchNodes     = "PET_NNODES"
	torchProcesses = "PET_NPROC_PER_NODE"
	torchRank      = "PET_NODE_RANK"
	torchMaster    = "PET_MASTER_ADDR"
	torchPort      = "PET_MASTER_PORT"

	jaxProcesses   = "JAX_NUM_PROCESSES"
	jaxRank        = "JAX_PROCESS_ID"
	jaxCoordinator = "JAX_COORDINATOR_ADDRESS"

	xgboostTracker = "DMLC_TRACKER_URI"
	xgboostPort    = "DMLC_TRACKER_PORT"
	xgboostTask    = "DMLC_TASK_ID"
	xgboostWorkers = "DMLC_NUM_WORKER"

	tensorflowConfig = "TF_CONFIG"
	tensorflowIndex  = "TF_TASK_INDEX"
)

// torch sets torchrun's variables.
func (l *layout) torch() error {
	node := l.node()
	if node == nil {
		return nil
	}
	env := []corev1.EnvVar{
		{Name: torchNodes, Value: strconv.Itoa(int(l.numNodes()))},
		{Name: torchProcesses, Value: l.torchProcesses()},
		nodeRank(torchRank),
	}
	setEnv(&node.Env, env...)
	listen(node)
	master := []corev1.EnvVar{{Name: torchMaster, Value: l.master()}, {Name: torchPort, Value: strconv.Itoa(port)}}
	if tunes(l.job) {
		l.command = l.torchtune(l.torchProcesses())
	} else {
		setEnv(&node.Env, master...)
	}
	if l.policy.Torch.EnvInjection == nil {
		return nil
	}
	for _, target := range l.policy.Torch.EnvInjection.Targets {
		for _, name := range target.ContainerNames {
			r := l.replicatedJob(target.JobName)
			if r == nil || container(r, name) == nil {
				return fmt.Errorf("envInjection names container %q of replicated job %q, which the runtime's template does not have", name, target.JobName)
			}
			setEnv(&container(r, name).Env, append(env, master...)...)
		}
	}
	return nil
}

// torchProcesses is how many processes torchrun starts on a node: as many as the
// job says; with GPUs, torchrun finds it out; else one for each processor.
func (l *layout) torchProcesses() string {
	if t := l.job.Spec.Trainer; t != nil && t.NumProcPerNode != nil {
		return strconv.Itoa(int(*t.NumProcPerNode))
	}
	if l.gpus() > 0 {
		return "auto"
	}
	return strconv.Itoa(max(processors(l.perNode()), 1))
}

// jax sets the variables of jax.distributed, with one process per node.
func (l *layout) jax() {
	node := l.node()
	if node == nil {
		return
	}
	setEnv(&node.Env,
		corev1.EnvVar{Name: jaxProcesses, Value: strconv.Itoa(int(l.numNodes()))},
		nodeRank(jaxRank),
		corev1.EnvVar{Name: jaxCoordinator, Value: l.master() + ":" + strconv.Itoa(port)},
	)
	listen(node)
}

// xgboost sets the variables with the address of the tracker, which runs on
// the first node.
func (l *layout) xgboost() {
	node := l.node()
	if node == nil {
		return
	}
	setEnv(&node.Env,
		corev1.EnvVar{Name: xgboostTracker, Value: l.master()},
		corev1.EnvVar{Name: xgboostPort, Value: strconv.Itoa(port)},
		nodeRank(xgboostTask),
		corev1.EnvVar{Name: xgboostWorkers, Value: strconv.Itoa(int(l.numNodes()) * max(l.gpus(), 1))},
	)
	listen(node)
}

// tasks are the types of TensorFlow's tasks by the names of replicated jobs; the
// trainer's are workers.
var tasks = []string{"chief", "ps", "evaluator"}

// tensorflow sets TF_CONFIG, which lists all tasks. Kubernetes substitutes the
// task's index, so that one template serves all Pods of a replicated job. All
// tasks run the job's program, which gets its role from TF_CONFIG.
func (l *layout) tensorflow() error {
	trainer := l.ancestor(v1alpha1.AncestorTrainer)
	if trainer == nil {
		return errors.New("the runtime's template has no replicated job for the trainer")
	}
	names := map[string]string{trainer.Name: "worker"} // task types by replicated job
	for _, task := range tasks {
		if l.replicatedJob(task) != nil && task != trainer.Name {
			names[task] = task
		}
	}
	cluster := map[string][]string{}
	for name, task := range names {
		if task == "evaluator" {
			continue // it watches the others' checkpoints, and is no part of the cluster
		}
		for _, host := range l.hosts(l.replicatedJob(name)) {
			cluster[task] = append(cluster[task], host+":"+strconv.Itoa(port))
		}
	}
	text, err := json.Marshal(cluster)
	if err != nil {
		return err
	}
	for name, task := range names {
		config := fmt.Sprintf(`{"cluster":%s,"task":{"type":%q,"index":$(%s)},"environment":"cloud"}`, text, task, tensorflowIndex)
		r := l.replicatedJob(name)
		if c := container(r, v1alpha1.Node); c != nil {
			l.program(c)
		}
		pod := &r.Template.Spec.Template.Spec
		for i := range pod.Containers {
			setEnv(&pod.Containers[i].Env, nodeRank(tensorflowIndex), corev1.EnvVar{Name: tensorflowConfig, Value: config})
			listen(&pod.Containers[i])
		}
	}
	return nil
}

// reserved are the variables that jobs on a runtime may not set.
func reserved(p *v1alpha1.MLPolicy) []string {
	switch {
	case p == nil:
	case p.Torch != nil:
		return []string{torchNodes, torchProcesses, torchRank, torchMaster, torchPort}
	case p.MPI != nil:
		return []string{mpiHostFile, mpiAgentArgs, mpiKeepNames, mpiSlots}
	case p.JAX != nil:
		return []string{jaxProcesses, jaxRank, jaxCoordinator}
	case p.XGBoost != nil:
		return []string{xgboostTracker, xgboostPort, xgboostTask, xgboostWorkers}
	case p.TensorFlow != nil:
		return []string{tensorflowConfig, tensorflowIndex}
	}
	return nil
}
