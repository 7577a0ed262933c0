// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// find returns the replicas of a type, whatever its spelling.
func find(j Job, t ReplicaType) (spec *ReplicaSpec, name ReplicaType) {
	for name, spec := range j.Replicas() {
		if usual, _ := j.Traits().spelling(name); usual == t {
			return spec, name
		}
	}
	return nil, t
}

// exactlyOne checks the number of masters, which must be explicit.
func exactlyOne(j Job, t ReplicaType, path *field.Path) field.ErrorList {
	spec, name := find(j, t)
	if spec == nil || spec.Replicas != nil && *spec.Replicas == 1 {
		return nil
	}
	return field.ErrorList{field.Forbidden(path.Key(string(name)).Child("replicas"), "must be 1")}
}

func (j *TFJob) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	chief, _ := find(j, TFChief)
	master, _ := find(j, TFMaster)
	if chief != nil && master != nil {
		errs = append(errs, field.Forbidden(path, "must not have more than 1 Chief or Master role"))
	}
	if p := j.Spec.SuccessPolicy; p != nil && *p != SuccessDefault && *p != SuccessAllWorkers {
		errs = append(errs, field.NotSupported(field.NewPath("spec", "successPolicy"), *p, []SuccessPolicy{SuccessDefault, SuccessAllWorkers}))
	}
	return errs
}

func (j *PyTorchJob) validate(path *field.Path) field.ErrorList {
	errs := exactlyOne(j, Master, path)
	worker, name := find(j, Worker)
	if worker != nil && worker.Replicas != nil && *worker.Replicas < 1 {
		errs = append(errs, field.Forbidden(path.Key(string(name)).Child("replicas"), "must be at least 1"))
	}
	spec := field.NewPath("spec")
	if n := j.Spec.NprocPerNode; n != nil && !slices.Contains([]string{"auto", "cpu", "gpu"}, *n) {
		if count, err := strconv.Atoi(*n); err != nil || count < 1 {
			errs = append(errs, field.NotSupported(spec.Child("nprocPerNode"), *n, []string{"auto", "cpu", "gpu", "a number from 1"}))
		}
	}
	e := j.Spec.ElasticPolicy
	if e == nil {
		return errs
	}
	elastic := spec.Child("elasticPolicy")
	if worker == nil {
		errs = append(errs, field.Required(path.Key(string(Worker)), "must be configured if elastic policy is used"))
	}
	if e.NProcPerNode != nil && j.Spec.NprocPerNode != nil {
		errs = append(errs, field.Forbidden(elastic.Child("nProcPerNode"), "must not be used with spec.nprocPerNode"))
	}
	if b := e.RDZVBackend; b != nil && !slices.Contains([]RDZVBackend{"c10d", "etcd", "etcd-v2"}, *b) {
		errs = append(errs, field.NotSupported(elastic.Child("rdzvBackend"), *b, []RDZVBackend{"c10d", "etcd", "etcd-v2"}))
	}
	return append(errs, validateBounds(e.MinReplicas, e.MaxReplicas, elastic)...)
}

func (j *PaddleJob) validate(path *field.Path) field.ErrorList {
	e := j.Spec.ElasticPolicy
	if e == nil {
		return nil
	}
	elastic := field.NewPath("spec", "elasticPolicy")
	errs := validateBounds(e.MinReplicas, e.MaxReplicas, elastic)
	if worker, _ := find(j, Worker); worker == nil {
		errs = append(errs, field.Required(path.Key(string(Worker)), "must be configured if elastic policy is used"))
	}
	return errs
}

func validateBounds(least, most *int32, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if least != nil && *least < 1 {
		errs = append(errs, field.Invalid(path.Child("minReplicas"), *least, "must be at least 1"))
	}
	if most != nil && *most < 1 {
		errs = append(errs, field.Invalid(path.Child("maxReplicas"), *most, "must be at least 1"))
	}
	if least != nil && most != nil && *least > *most {
		errs = append(errs, field.Invalid(path.Child("maxReplicas"), *most, fmt.Sprintf("must be at least minReplicas, %d", *least)))
	}
	return errs
}

func (j *XGBoostJob) validate(path *field.Path) field.ErrorList {
	if master, _ := find(j, Master); master == nil {
		return field.ErrorList{field.Required(path.Key(string(Master)), "must be present")}
	}
	return exactlyOne(j, Master, path)
}

func (*JAXJob) validate(*field.Path) field.ErrorList { return nil }

func (j *MXJob) validate(*field.Path) field.ErrorList {
	if m := j.Spec.JobMode; m != MXTrain && m != MXTune {
		return field.ErrorList{field.NotSupported(field.NewPath("spec", "jobMode"), m, []JobMode{MXTrain, MXTune})}
	}
	return nil
}

func (j *MPIJob) validate(path *field.Path) field.ErrorList {
	errs := validateClean(j.Spec.CleanPodPolicy, field.NewPath("spec", "cleanPodPolicy"))
	launcher, name := find(j, MPILauncher)
	switch {
	case launcher == nil:
		errs = append(errs, field.Required(path.Key(string(MPILauncher)), "must be present"))
	case launcher.Replicas != nil && *launcher.Replicas != 1:
		errs = append(errs, field.Forbidden(path.Key(string(name)).Child("replicas"), "must be 1"))
	}
	if n := j.Spec.SlotsPerWorker; n != nil && *n < 1 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "slotsPerWorker"), *n, "must be at least 1"))
	}
	if j.IsV2beta1() {
		errs = append(errs, j.validateV2beta1(path)...)
	}
	return errs
}

func (j *MPIJob) validateV2beta1(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	implementations := []MPIImplementation{IntelMPI, MPICH, OpenMPI}
	if i := j.Spec.MPIImplementation; !slices.Contains(implementations, i) {
		errs = append(errs, field.NotSupported(spec.Child("mpiImplementation"), i, implementations))
	}
	policies := []LauncherCreationPolicy{LauncherAtStartup, LauncherWaitForWorkersReady}
	if p := j.Spec.LauncherCreationPolicy; p != "" && !slices.Contains(policies, p) {
		errs = append(errs, field.NotSupported(spec.Child("launcherCreationPolicy"), p, policies))
	}
	if dir := j.Spec.SSHAuthMountPath; dir != "" && !strings.HasPrefix(dir, "/") {
		errs = append(errs, field.Invalid(spec.Child("sshAuthMountPath"), dir, "must be an absolute path"))
	}
	if j.Spec.RunPolicy.RestartScope == RestartJob {
		errs = append(errs, field.NotSupported(spec.Child("runPolicy", "restartScope"), RestartJob, []RestartScope{RestartReplica}))
	}
	worker, name := find(j, Worker)
	if worker != nil && (worker.Replicas == nil || *worker.Replicas < 1) {
		errs = append(errs, field.Required(path.Key(string(name)).Child("replicas"), "must be at least 1"))
	}
	retries := []RestartPolicy{RestartNever, RestartOnFailure}
	for _, t := range j.Traits().Types {
		if replicas, name := find(j, t); replicas != nil && replicas.RestartPolicy != "" && !slices.Contains(retries, replicas.RestartPolicy) {
			errs = append(errs, field.NotSupported(path.Key(string(name)).Child("restartPolicy"), replicas.RestartPolicy, retries))
		}
	}
	return errs
}
