// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxReplicas bounds the replicas of one type.
const MaxReplicas = 100_000

// Validate says what is wrong with a job as the user wrote it, without
// defaults.
func Validate(j Job) field.ErrorList {
	t := j.Traits()
	errs := validateName(j)
	errs = append(errs, t.validatePolicy(j.Policy(), field.NewPath("spec", "runPolicy"))...)
	path := field.NewPath("spec", t.Field)
	if len(j.Replicas()) == 0 {
		return append(errs, field.Required(path, "a job has replicas, of the types "+list(t.Types)))
	}
	before := len(errs)
	seen := map[ReplicaType]bool{}
	for _, name := range slices.Sorted(maps.Keys(j.Replicas())) {
		usual, known := t.spelling(name)
		switch {
		case !known:
			errs = append(errs, field.NotSupported(path.Key(string(name)), name, t.Types))
		case seen[usual]:
			errs = append(errs, field.Duplicate(path.Key(string(name)), usual))
		}
		seen[usual] = true
		errs = append(errs, t.validateReplica(j.Replicas()[name], path.Key(string(name)))...)
		errs = append(errs, validateMounts(j.Policy().Checkpoint, j.Replicas()[name], path.Key(string(name)))...)
	}
	if len(errs) > before {
		return errs
	}
	return append(errs, j.validate(path)...)
}

// ValidateUpdate says what of a job must not be changed.
func ValidateUpdate(now, before Job) field.ErrorList {
	if from, to := before.Traits().GroupVersion().Version, now.Traits().GroupVersion().Version; from != to {
		return field.ErrorList{field.Forbidden(field.NewPath("apiVersion"), fmt.Sprintf("this %s is one of %s, not of %s: write it in that version", now.Traits().Kind, from, to))}
	}
	policy := field.NewPath("spec", "runPolicy")
	errs := apivalidation.ValidateImmutableField(now.Policy().ManagedBy, before.Policy().ManagedBy, policy.Child("managedBy"))
	return append(errs, now.Policy().Checkpoint.Unchanged(before.Policy().Checkpoint, policy.Child("checkpoint"))...)
}

// Warnings are what a user is told about a job that is accepted.
func Warnings(j Job) []string {
	if p, ok := j.(*PyTorchJob); ok && p.Spec.ElasticPolicy != nil && p.Spec.ElasticPolicy.NProcPerNode != nil {
		return []string{"spec.elasticPolicy.nProcPerNode is deprecated, use spec.nprocPerNode instead"}
	}
	return nil
}

// validateName makes sure that replicas' Pods and Services can be named after
// the job. Names that the API server generates are not known yet.
func validateName(j Job) field.ErrorList {
	path, name := field.NewPath("metadata", "name"), j.GetName()
	if m, ok := j.(*MPIJob); name == "" || ok && !m.IsV2beta1() {
		return nil // its replicas have no Services
	}
	if wrong := apivalidation.NameIsDNS1035Label(name, false); len(wrong) > 0 {
		return field.ErrorList{field.Invalid(path, name, "should match: "+strings.Join(wrong, ","))}
	}
	for _, spelling := range slices.Sorted(maps.Keys(j.Replicas())) {
		spec := j.Replicas()[spelling]
		last := int32(0)
		if spec != nil && spec.Replicas != nil {
			last = max(*spec.Replicas-1, 0)
		}
		longest := ReplicaName(name, spelling, int(last))
		if over := len(longest) - validation.DNS1035LabelMaxLength; over > 0 {
			return field.ErrorList{field.Invalid(path, name, fmt.Sprintf("is too long by %d: the replica %s needs a name of at most %d characters", over, longest, validation.DNS1035LabelMaxLength))}
		}
	}
	return nil
}

// ReplicaName is the name of a replica's Pod and Service. The one launcher of an
// MPIJob has no number.
func ReplicaName(job string, t ReplicaType, index int) string {
	if t == MPILauncher {
		return job + "-launcher"
	}
	return strings.ReplaceAll(job+"-"+strings.ToLower(string(t))+"-"+strconv.Itoa(index), "/", "-")
}

func (t *Traits) validatePolicy(p *RunPolicy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p.ManagedBy != nil && *p.ManagedBy != t.ManagedBy() && *p.ManagedBy != ManagedByMultiKueue {
		errs = append(errs, field.NotSupported(path.Child("managedBy"), *p.ManagedBy, []string{ManagedByMultiKueue, t.ManagedBy()}))
	}
	errs = append(errs, validateClean(p.CleanPodPolicy, path.Child("cleanPodPolicy"))...)
	if p.RestartScope != "" && p.RestartScope != RestartReplica && p.RestartScope != RestartJob {
		errs = append(errs, field.NotSupported(path.Child("restartScope"), p.RestartScope, []RestartScope{RestartReplica, RestartJob}))
	}
	errs = append(errs, notNegative(p.TTLSecondsAfterFinished, path.Child("ttlSecondsAfterFinished"))...)
	errs = append(errs, notNegative(p.BackoffLimit, path.Child("backoffLimit"))...)
	errs = append(errs, p.Checkpoint.Validate(path.Child("checkpoint"))...)
	if p.ActiveDeadlineSeconds != nil && *p.ActiveDeadlineSeconds <= 0 {
		errs = append(errs, field.Invalid(path.Child("activeDeadlineSeconds"), *p.ActiveDeadlineSeconds, "must be greater than zero"))
	}
	return errs
}

func validateClean(p *CleanPodPolicy, path *field.Path) field.ErrorList {
	if p == nil || slices.Contains([]CleanPodPolicy{"", CleanPodsAll, CleanPodsRunning, CleanPodsNone}, *p) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, *p, []CleanPodPolicy{CleanPodsAll, CleanPodsRunning, CleanPodsNone})}
}

func notNegative(n *int32, path *field.Path) field.ErrorList {
	if n == nil || *n >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *n, "must be at least 0")}
}

// validateReplica checks what replicas of all kinds have.
func (t *Traits) validateReplica(spec *ReplicaSpec, path *field.Path) field.ErrorList {
	containers := path.Child("template", "spec", "containers")
	if spec == nil || len(spec.Template.Spec.Containers) == 0 {
		return field.ErrorList{field.Required(containers, "must be specified")}
	}
	var errs field.ErrorList
	named := t.Framework == mpiTraits.Framework // its main container is the first, whatever its name
	for i, c := range spec.Template.Spec.Containers {
		if c.Image == "" {
			errs = append(errs, field.Required(containers.Index(i).Child("image"), "must be required"))
		}
		if c.Name == "" {
			errs = append(errs, field.Required(containers.Index(i).Child("name"), "must be required"))
		}
		named = named || c.Name == t.Container
	}
	if !named {
		errs = append(errs, field.Required(containers, "must have at least one container with name "+t.Container))
	}
	switch spec.RestartPolicy {
	case "", RestartAlways, RestartOnFailure, RestartNever, RestartOnExitCode:
	default:
		errs = append(errs, field.NotSupported(path.Child("restartPolicy"), spec.RestartPolicy,
			[]RestartPolicy{RestartAlways, RestartOnFailure, RestartNever, RestartOnExitCode}))
	}
	if spec.Replicas != nil && (*spec.Replicas < 0 || *spec.Replicas > MaxReplicas) {
		errs = append(errs, field.Invalid(path.Child("replicas"), *spec.Replicas, fmt.Sprintf("must be from 0 to %d", MaxReplicas)))
	}
	return errs
}

// validateMounts checks that a replica's Pods leave room for the job's checkpoints.
func validateMounts(c *Checkpoint, spec *ReplicaSpec, path *field.Path) field.ErrorList {
	if c == nil || spec == nil {
		return nil
	}
	c = c.DeepCopy()
	c.SetDefaults()
	if err := c.Fits(&spec.Template.Spec); err != nil {
		return field.ErrorList{field.Forbidden(path.Child("template", "spec"), err.Error())}
	}
	return nil
}

func list(types []ReplicaType) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	return strings.Join(names, ", ")
}
