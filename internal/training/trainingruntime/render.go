// SPDX-License-Identifier: Apache-2.0

package trainingruntime

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/api/jobset/v1alpha2"
	katib "diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/training/checkpoint"
)

// Objects are what does the training of a TrainJob; each is owned by it.
type Objects struct {
	// JobSet has the job's name, and its defaults.
	JobSet *v1alpha2.JobSet
	// HostFile lists the nodes for mpirun; nil where it is not needed.
	HostFile *corev1.ConfigMap
	// Checkpoint is the claim of the job's checkpoints; nil without them.
	Checkpoint *corev1.PersistentVolumeClaim
	// SSHKeys is the name of the Secret with the nodes' ssh keys, "" if not
	// needed.
	SSHKeys string
	// Authorities are the CA certificates of the server to which nodes report
	// progress; nil if there is none.
	Authorities *corev1.ConfigMap
	// PodGroup has a gang scheduler place all nodes at once; nil without one.
	PodGroup *unstructured.Unstructured
}

// layout is a JobSet in the making.
type layout struct {
	job    *v1alpha1.TrainJob
	policy v1alpha1.MLPolicy
	labels map[string]string // and annotations, of the JobSet
	notes  map[string]string
	set    v1alpha2.JobSetSpec
	out    *Objects

	command []string // of the nodes, where it is not the job's
}

// Render makes the objects for a job on a runtime. Neither is changed.
func Render(job *v1alpha1.TrainJob, runtime *v1alpha1.TrainingRuntimeSpec) (*Objects, error) {
	runtime = runtime.DeepCopy()
	runtime.SetDefaults()
	l, err := begin(job, runtime)
	if err != nil {
		return nil, err
	}
	if err := l.framework(); err != nil {
		return nil, err
	}
	l.initializers()
	l.trainer()
	if err := l.checkpoint(); err != nil {
		return nil, err
	}
	l.directory()
	l.trial()
	l.gang(runtime.PodGroupPolicy)
	l.set.Suspend = ptr.To(job.IsSuspended())
	l.out.JobSet = &v1alpha2.JobSet{
		ObjectMeta: l.meta(job.Name),
		Spec:       l.set,
	}
	l.out.JobSet.Labels, l.out.JobSet.Annotations = l.labels, l.notes
	l.out.JobSet.SetDefaults()
	return l.out, nil
}

// begin has the nodes of a job, with their resources, from a runtime that has its
// defaults and is changed.
func begin(job *v1alpha1.TrainJob, runtime *v1alpha1.TrainingRuntimeSpec) (*layout, error) {
	l := &layout{
		job:    job,
		policy: ptr.Deref(runtime.MLPolicy, v1alpha1.MLPolicy{}),
		labels: maps.Clone(runtime.Template.Labels),
		notes:  maps.Clone(runtime.Template.Annotations),
		set:    runtime.Template.Spec,
		out:    &Objects{},
	}
	if err := l.patch(); err != nil {
		return nil, err
	}
	l.scale()
	return l, l.resources()
}

// meta is the metadata of an object that the job owns.
func (l *layout) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: l.job.Namespace, OwnerReferences: []metav1.OwnerReference{*Owner(l.job)}}
}

// Owner is the reference to a job by what it owns.
func Owner(job *v1alpha1.TrainJob) *metav1.OwnerReference {
	return metav1.NewControllerRef(job, v1alpha1.GroupVersion.WithKind(v1alpha1.TrainJobKind))
}

// framework has the nodes find each other.
func (l *layout) framework() error {
	switch p := &l.policy; {
	case p.Torch != nil:
		return l.torch()
	case p.MPI != nil:
		return l.mpi()
	case p.JAX != nil:
		l.jax()
	case p.XGBoost != nil:
		l.xgboost()
	case p.TensorFlow != nil:
		return l.tensorflow()
	}
	return nil
}

// initializers has the data and the model of the job fetched.
func (l *layout) initializers() {
	i := l.job.Spec.Initializer
	if i == nil {
		return
	}
	for name, asset := range map[string]*v1alpha1.Asset{v1alpha1.DatasetInitializer: i.Dataset, v1alpha1.ModelInitializer: i.Model} {
		r := l.ancestor(name)
		if r == nil || asset == nil {
			continue
		}
		c := container(r, name)
		if c == nil {
			continue
		}
		if asset.StorageURI != nil {
			setEnv(&c.Env, corev1.EnvVar{Name: "STORAGE_URI", Value: *asset.StorageURI})
		}
		setEnv(&c.Env, asset.Env...)
		if asset.SecretRef != nil {
			c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: *asset.SecretRef}})
		}
	}
}

// trainer has the nodes run the job's program.
func (l *layout) trainer() {
	if c := l.node(); c != nil {
		l.program(c)
	}
	if t := l.job.Spec.Trainer; t != nil && l.launcherIsNode() {
		if r := l.replicatedJob(v1alpha1.Node); r != nil {
			if c := container(r, v1alpha1.Node); c != nil {
				setEnv(&c.Env, t.Env...)
			}
		}
	}
}

// program has a container run the job's program.
func (l *layout) program(c *corev1.Container) {
	t := l.job.Spec.Trainer
	if t == nil {
		return
	}
	if t.Image != nil {
		c.Image = *t.Image
	}
	switch {
	case l.command != nil:
		c.Command = l.command
	case t.Command != nil:
		c.Command = t.Command
	}
	if t.Args != nil {
		c.Args = t.Args
	}
	setEnv(&c.Env, t.Env...)
}

// checkpoint gives those who train the job's checkpoints.
func (l *layout) checkpoint() error {
	c := l.job.Spec.Checkpoint
	if c == nil {
		return nil
	}
	l.out.Checkpoint = checkpoint.Claim(l.job.Name, c)
	l.out.Checkpoint.ObjectMeta = l.meta(l.out.Checkpoint.Name)
	for i := range l.set.ReplicatedJobs {
		r := &l.set.ReplicatedJobs[i]
		if part := r.Template.Labels[v1alpha1.LabelAncestor]; part == v1alpha1.DatasetInitializer || part == v1alpha1.ModelInitializer {
			continue
		}
		pod := &r.Template.Spec.Template.Spec
		if err := c.Fits(pod); err != nil {
			return fmt.Errorf("replicated job %s: %w", r.Name, err)
		}
		checkpoint.Mount(l.job.Name, c, pod)
	}
	return nil
}

// directory has the Pods start where diwan run was told that the job's files are.
func (l *layout) directory() {
	dir := l.job.Annotations[katib.AnnotationWorkingDirectory]
	if dir == "" {
		return
	}
	for i := range l.set.ReplicatedJobs {
		pod := &l.set.ReplicatedJobs[i].Template.Spec.Template
		if pod.Annotations[katib.AnnotationWorkingDirectory] == "" {
			pod.Annotations = with(pod.Annotations, katib.AnnotationWorkingDirectory, dir)
		}
	}
}

// trial marks the Pods of a job that is a trial of an Experiment, so that its
// metrics are found.
func (l *layout) trial() {
	name := l.job.Labels[katib.LabelTrial]
	if name == "" {
		return
	}
	for i := range l.set.ReplicatedJobs {
		pod := &l.set.ReplicatedJobs[i].Template.Spec.Template
		pod.Labels = with(pod.Labels, katib.LabelTrial, name)
		for k := range pod.Spec.Containers {
			setEnv(&pod.Spec.Containers[k].Env, corev1.EnvVar{Name: katib.EnvTrialName, Value: name})
		}
	}
}
