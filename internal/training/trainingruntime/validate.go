// SPDX-License-Identifier: Apache-2.0

package trainingruntime

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"diwan.dev/diwan/api/jobset/v1alpha2"
	"diwan.dev/diwan/api/trainer/v1alpha1"
)

// Validate returns what of a job, which has its defaults, does not fit its
// runtime.
func Validate(job *v1alpha1.TrainJob, runtime *v1alpha1.TrainingRuntimeSpec) field.ErrorList {
	var errs field.ErrorList
	spec, ref := field.NewPath("spec"), field.NewPath("spec", "runtimeRef")
	wrong := func(at *field.Path, format string, args ...any) {
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, fmt.Sprintf(format, args...)))
	}
	if runtime.MLPolicy != nil && runtime.MLPolicy.Flux != nil {
		wrong(ref, "the runtime's mlPolicy is flux, which is not supported")
	}
	if i := job.Spec.Initializer; i != nil {
		errs = append(errs, fetches(runtime, v1alpha1.DatasetInitializer, i.Dataset, ref)...)
		errs = append(errs, fetches(runtime, v1alpha1.ModelInitializer, i.Model, ref)...)
	}
	if t := job.Spec.Trainer; t != nil {
		for i, e := range t.Env {
			if slices.Contains(reserved(runtime.MLPolicy), e.Name) {
				errs = append(errs, field.Forbidden(spec.Child("trainer", "env").Index(i), e.Name+" is a reserved env: the runtime sets it"))
			}
		}
	}
	errs = append(errs, fits(job, runtime, spec.Child("runtimePatches"))...)
	if len(errs) > 0 {
		return errs
	}
	if runtime.MLPolicy != nil && runtime.MLPolicy.Torch != nil && tunes(job) {
		defaulted := runtime.DeepCopy()
		defaulted.SetDefaults()
		if l, err := begin(job, defaulted); err == nil { // else Render says why
			errs = l.validateTorchtune()
		}
		if len(errs) > 0 {
			return errs
		}
	}
	objects, err := Render(job, runtime)
	if err != nil {
		return append(errs, field.Invalid(ref, job.Spec.RuntimeRef.Name, err.Error()))
	}
	for _, e := range objects.JobSet.Validate() {
		wrong(ref, "the JobSet of this job would not be valid: %v", e)
	}
	return errs
}

// fetches requires a runtime to have what fetches an asset.
func fetches(runtime *v1alpha1.TrainingRuntimeSpec, name string, asset *v1alpha1.Asset, at *field.Path) field.ErrorList {
	if asset == nil {
		return nil
	}
	invalid := func(format string) field.ErrorList {
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, fmt.Sprintf(format, name))}
	}
	i := slices.IndexFunc(runtime.Template.Spec.ReplicatedJobs, func(r v1alpha2.ReplicatedJob) bool { return r.Name == name })
	if i < 0 {
		return invalid("must have %[1]s job when trainJob is configured with an initializer for it")
	}
	c := container(&runtime.Template.Spec.ReplicatedJobs[i], name)
	if c == nil {
		return invalid("must have container with name - %[1]s in the %[1]s job")
	}
	if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v1alpha1.InitializerVolume }) {
		return invalid("must have volumeMount with name - " + v1alpha1.InitializerVolume + " in container %[1]s of the %[1]s job")
	}
	return nil
}

// fits requires that patches refer to what the runtime has.
func fits(job *v1alpha1.TrainJob, runtime *v1alpha1.TrainingRuntimeSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	jobs := map[string]*v1alpha2.ReplicatedJob{}
	for i := range runtime.Template.Spec.ReplicatedJobs {
		r := &runtime.Template.Spec.ReplicatedJobs[i]
		jobs[r.Name] = r
	}
	for i := range job.Spec.RuntimePatches {
		patch := job.Spec.RuntimePatches[i].JobSet().Spec
		if patch == nil {
			continue
		}
		for k, p := range patch.ReplicatedJobs {
			path := at.Index(i).Child("trainingRuntimeSpec", "template", "spec", "replicatedJobs").Index(k)
			r := jobs[p.Name]
			if r == nil {
				errs = append(errs, field.Invalid(path.Child("name"), p.Name, "must not have replicated job that doesn't exist in the runtime job template"))
				continue
			}
			if pod := p.Pod(); pod != nil {
				errs = append(errs, fitsContainers(r, pod, path.Child("template", "spec", "template", "spec"))...)
			}
		}
	}
	return errs
}

func fitsContainers(r *v1alpha2.ReplicatedJob, pod *v1alpha1.PodSpecPatch, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	check := func(kind string, list []v1alpha1.ContainerPatch) {
		for i, c := range list {
			path := at.Child(kind + "s").Index(i)
			switch {
			case container(r, c.Name) == nil:
				errs = append(errs, field.Invalid(path.Child("name"), c.Name, fmt.Sprintf("must not have %s that doesn't exist in the runtime job %s", kind, r.Name)))
			case len(c.Env) > 0 && slices.Contains([]string{v1alpha1.Node, v1alpha1.DatasetInitializer, v1alpha1.ModelInitializer}, c.Name):
				errs = append(errs, field.Forbidden(path.Child("env"), "must not have envs for the dataset-initializer, model-initializer, node containers: the TrainJob has them"))
			}
		}
	}
	check("initContainer", pod.InitContainers)
	check("container", pod.Containers)
	return errs
}
