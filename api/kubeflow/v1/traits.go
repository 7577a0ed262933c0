// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Job is what the kinds of this package have in common.
// +kubebuilder:object:generate=false
type Job interface {
	metav1.Object
	runtime.Object

	// Traits are those of the kind.
	Traits() *Traits
	// Replicas, Policy and State point into the job itself.
	Replicas() map[ReplicaType]*ReplicaSpec
	Policy() *RunPolicy
	State() *JobStatus

	// setDefaults fills in fields that only this kind has.
	setDefaults()
	// validate checks fields that only this kind has. Every replica has a
	// container.
	validate(replicas *field.Path) field.ErrorList
}

// Traits are what is specific to a kind.
// +kubebuilder:object:generate=false
type Traits struct {
	// Kind, Plural and Framework name it: PyTorchJob, pytorchjobs, pytorch.
	Kind, Plural, Framework string
	// Field is the field of the replicas: pytorchReplicaSpecs.
	Field string
	// Types are the replica types, in the order in which they are processed.
	Types []ReplicaType
	// Container is the name of the training container.
	Container string
	// PortName and Port are the port that it listens on by default. 0: none.
	PortName string
	Port     int32
	// RestartPolicy is the default.
	RestartPolicy RestartPolicy
	// Controller is the value of the label operator-name.
	Controller string
	// Scales reports whether autoscalers may change the number of workers.
	Scales bool
	// LaterVersion is the API version in which the job was written, if that is
	// not this package's.
	LaterVersion string
}

// GroupVersion is the group and version in which the job was written.
func (t *Traits) GroupVersion() schema.GroupVersion {
	if t.LaterVersion != "" {
		return schema.GroupVersion{Group: Group, Version: t.LaterVersion}
	}
	return GroupVersion
}

// ManagedBy is the value of that field for jobs that this operator manages.
func (t *Traits) ManagedBy() string {
	if t.LaterVersion != "" {
		return ManagedByMPIOperator
	}
	return ManagedByTrainingOperator
}

var (
	tfTraits = Traits{Kind: "TFJob", Plural: "tfjobs", Framework: "tensorflow", Field: "tfReplicaSpecs", Controller: "tfjob-controller",
		Types:     []ReplicaType{TFChief, TFEvaluator, TFMaster, TFPS, TFWorker},
		Container: "tensorflow", PortName: "tfjob-port", Port: 2222, RestartPolicy: RestartNever}
	pytorchTraits = Traits{Kind: "PyTorchJob", Plural: "pytorchjobs", Framework: "pytorch", Field: "pytorchReplicaSpecs", Controller: "pytorchjob-controller",
		Types:     []ReplicaType{Master, Worker},
		Container: "pytorch", PortName: "pytorchjob-port", Port: 23456, RestartPolicy: RestartOnFailure, Scales: true}
	mpiTraits = Traits{Kind: "MPIJob", Plural: "mpijobs", Framework: "mpi", Field: "mpiReplicaSpecs", Controller: "mpijob-controller",
		Types:     []ReplicaType{MPILauncher, Worker},
		Container: "mpi", RestartPolicy: RestartNever}
	mpiV2beta1Traits = Traits{Kind: "MPIJob", Plural: "mpijobs", Framework: "mpi", Field: "mpiReplicaSpecs", Controller: "mpi-operator",
		Types:     []ReplicaType{MPILauncher, Worker},
		Container: "mpi", RestartPolicy: RestartNever, LaterVersion: "v2beta1"}
	xgboostTraits = Traits{Kind: "XGBoostJob", Plural: "xgboostjobs", Framework: "xgboost", Field: "xgbReplicaSpecs", Controller: "xgboostjob-controller",
		Types:     []ReplicaType{Master, Worker},
		Container: "xgboost", PortName: "xgboostjob-port", Port: 9999, RestartPolicy: RestartNever}
	paddleTraits = Traits{Kind: "PaddleJob", Plural: "paddlejobs", Framework: "paddle", Field: "paddleReplicaSpecs", Controller: "paddlejob-controller",
		Types:     []ReplicaType{Master, Worker},
		Container: "paddle", PortName: "master", Port: 36543, RestartPolicy: RestartOnFailure, Scales: true}
	jaxTraits = Traits{Kind: "JAXJob", Plural: "jaxjobs", Framework: "jax", Field: "jaxReplicaSpecs", Controller: "jaxjob-controller",
		Types:     []ReplicaType{Worker},
		Container: "jax", PortName: "jaxjob-port", Port: 6666, RestartPolicy: RestartNever, Scales: true}
	mxTraits = Traits{Kind: "MXJob", Plural: "mxjobs", Framework: "mxnet", Field: "mxReplicaSpecs", Controller: "mxjob-controller",
		Types:     []ReplicaType{MXScheduler, MXServer, MXWorker, MXTunerTracker, MXTunerServer, MXTuner},
		Container: "mxnet", PortName: "mxjob-port", Port: 9091, RestartPolicy: RestartNever}
)

// Jobs returns an empty job of each kind.
func Jobs() []Job {
	return []Job{&TFJob{}, &PyTorchJob{}, &MPIJob{}, &XGBoostJob{}, &PaddleJob{}, &JAXJob{}, &MXJob{}}
}

// NewList returns an empty list of jobs of a job's kind.
func NewList(of Job) interface {
	metav1.ListInterface
	runtime.Object
} {
	switch of.(type) {
	case *TFJob:
		return &TFJobList{}
	case *PyTorchJob:
		return &PyTorchJobList{}
	case *MPIJob:
		return &MPIJobList{}
	case *XGBoostJob:
		return &XGBoostJobList{}
	case *PaddleJob:
		return &PaddleJobList{}
	case *JAXJob:
		return &JAXJobList{}
	default:
		return &MXJobList{}
	}
}

// Traits implements Job.
func (j *TFJob) Traits() *Traits { return &tfTraits }

// Replicas implements Job.
func (j *TFJob) Replicas() map[ReplicaType]*ReplicaSpec { return j.Spec.TFReplicaSpecs }

// Policy implements Job.
func (j *TFJob) Policy() *RunPolicy { return &j.Spec.RunPolicy }

// State implements Job.
func (j *TFJob) State() *JobStatus { return &j.Status }

// Traits implements Job.
func (j *PyTorchJob) Traits() *Traits { return &pytorchTraits }

// Replicas implements Job.
func (j *PyTorchJob) Replicas() map[ReplicaType]*ReplicaSpec { return j.Spec.PyTorchReplicaSpecs }

// Policy implements Job.
func (j *PyTorchJob) Policy() *RunPolicy { return &j.Spec.RunPolicy }

// State implements Job.
func (j *PyTorchJob) State() *JobStatus { return &j.Status }

// Traits implements Job.
func (j *MPIJob) Traits() *Traits {
	if j.IsV2beta1() {
		return &mpiV2beta1Traits
	}
	return &mpiTraits
}

// Replicas implements Job.
func (j *MPIJob) Replicas() map[ReplicaType]*ReplicaSpec { return j.Spec.MPIReplicaSpecs }

// Policy implements Job.
func (j *MPIJob) Policy() *RunPolicy { return &j.Spec.RunPolicy }

// State implements Job.
func (j *MPIJob) State() *JobStatus { return &j.Status }

// Traits implements Job.
func (j *XGBoostJob) Traits() *Traits { return &xgboostTraits }

// Replicas implements Job.
func (j *XGBoostJob) Replicas() map[ReplicaType]*ReplicaSpec { return j.Spec.XGBReplicaSpecs }

// Policy implements Job.
func (j *XGBoostJob) Policy() *RunPolicy { return &j.Spec.RunPolicy }

// State implements Job.
func (j *XGBoostJob) State() *JobStatus { return &j.Status }

// Traits implements Job.
func (j *PaddleJob) Traits() *Traits { return &paddleTraits }

// Replicas implements Job.
func (j *PaddleJob) Replicas() map[ReplicaType]*ReplicaSpec { return j.Spec.PaddleReplicaSpecs }

// Policy implements Job.
func (j *PaddleJob) Policy() *RunPolicy { return &j.Spec.RunPolicy }

// State implements Job.
func (j *PaddleJob) State() *JobStatus { return &j.Status }

// Traits implements Job.
func (j *JAXJob) Traits() *Traits { return &jaxTraits }

// Replicas implements Job.
func (j *JAXJob) Replicas() map[ReplicaType]*ReplicaSpec { return j.Spec.JAXReplicaSpecs }

// Policy implements Job.
func (j *JAXJob) Policy() *RunPolicy { return &j.Spec.RunPolicy }

// State implements Job.
func (j *JAXJob) State() *JobStatus { return &j.Status }

// Traits implements Job.
func (j *MXJob) Traits() *Traits { return &mxTraits }

// Replicas implements Job.
func (j *MXJob) Replicas() map[ReplicaType]*ReplicaSpec { return j.Spec.MXReplicaSpecs }

// Policy implements Job.
func (j *MXJob) Policy() *RunPolicy { return &j.Spec.RunPolicy }

// State implements Job.
func (j *MXJob) State() *JobStatus { return &j.Status }
