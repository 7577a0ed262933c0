// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
	"diwan.dev/diwan/internal/training/checkpoint"
	"diwan.dev/diwan/internal/training/sshkey"
)

// ensure makes sure of a job's objects beside Pods and Services. What was written
// is remembered, and written again only when it changes, when one of them was
// deleted, or once after a restart of the process.
func (r *reconciler) ensure(ctx context.Context, job v1.Job, objects []client.Object) error {
	for _, obj := range objects {
		label(job, obj)
		text, err := json.Marshal(obj)
		if err != nil {
			return fmt.Errorf("cannot encode %T %s: %w", obj, obj.GetName(), err)
		}
		key, hash := objectKey(obj), sha256.Sum256(text)
		if r.ensured.is(job, key, hash) {
			continue
		}
		if err := r.put(ctx, job, obj); err != nil {
			return err
		}
		r.ensured.set(job, key, hash)
	}
	return nil
}

// put creates an object of a job, or replaces the content of an existing one. One
// that does not belong to the job is left alone. A Secret, which has keys, and a
// claim, which users may expand, are created once.
func (r *reconciler) put(ctx context.Context, job v1.Job, obj client.Object) error {
	gvk, err := r.client.GroupVersionKindFor(obj)
	if err != nil {
		return fmt.Errorf("cannot tell the kind of %s/%s: %w", obj.GetNamespace(), obj.GetName(), err)
	}
	kind := gvk.Kind
	made := obj.DeepCopyObject().(client.Object)
	secret, isSecret := made.(*corev1.Secret)
	if isSecret {
		keys, err := sshkey.New()
		if err != nil {
			return err
		}
		secret.Data = keys
	}
	if err = r.client.Create(ctx, made); err == nil {
		return nil
	}
	if meta.IsNoMatchError(err) {
		r.Events.Warning(job, "FailedCreate"+kind, "Error creating: the cluster does not serve %s of %s", kind, gvk.GroupVersion())
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot create %s %s/%s: %w", kind, obj.GetNamespace(), obj.GetName(), err)
	}
	have := obj.DeepCopyObject().(client.Object)
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(obj), have); err != nil {
		return fmt.Errorf("cannot read %s %s/%s: %w", kind, obj.GetNamespace(), obj.GetName(), err)
	}
	if !metav1.IsControlledBy(have, job) {
		r.Events.Warning(job, "ErrResourceExists", "Resource %q of Kind %q already exists and is not managed by %s", obj.GetName(), kind, job.Traits().Kind)
		return fmt.Errorf("cannot create %s %s/%s: an object with this name exists and is not owned by the job; delete it", kind, obj.GetNamespace(), obj.GetName())
	}
	if _, isClaim := obj.(*corev1.PersistentVolumeClaim); isClaim || isSecret {
		return nil
	}
	if ok, err := says(have, obj); ok || err != nil {
		return err
	}
	if group, ok := obj.(*unstructured.Unstructured); ok {
		obj = onto(have.(*unstructured.Unstructured), group)
	}
	obj.SetResourceVersion(have.GetResourceVersion())
	if err := r.client.Update(ctx, obj); err != nil {
		return fmt.Errorf("cannot update %s %s/%s: %w", kind, obj.GetNamespace(), obj.GetName(), err)
	}
	return nil
}

// onto applies a group's content to an existing one: what others have written
// stays, such as a finalizer.
func onto(have, should *unstructured.Unstructured) *unstructured.Unstructured {
	merged := have.DeepCopy()
	overlay(merged.Object, should.Object)
	if !hasDefaults(should) {
		merged.Object["spec"] = should.Object["spec"]
	}
	return merged
}

func overlay(have, should map[string]any) {
	for key, value := range should {
		part, ok := value.(map[string]any)
		under, both := have[key].(map[string]any)
		if ok && both {
			overlay(under, part)
			continue
		}
		have[key] = value
	}
}

// hasDefaults reports whether the API server adds to what is said of an object:
// not to that of groups whose kind was installed, of which all is said here.
func hasDefaults(obj client.Object) bool {
	group, ok := obj.(*unstructured.Unstructured)
	return !ok || group.GetAPIVersion() == nativeVersion
}

// says reports whether an object says all that it should. Without defaults that
// is also all that it may.
func says(have, should client.Object) (bool, error) {
	h, err := runtime.DefaultUnstructuredConverter.ToUnstructured(have)
	if err != nil {
		return false, fmt.Errorf("cannot read %T %s: %w", have, have.GetName(), err)
	}
	s, err := runtime.DefaultUnstructuredConverter.ToUnstructured(should)
	if err != nil {
		return false, fmt.Errorf("cannot read %T %s: %w", should, should.GetName(), err)
	}
	delete(s, "status")
	if !hasDefaults(should) && !equality.Semantic.DeepEqual(h["spec"], s["spec"]) {
		return false, nil
	}
	return contains(h, s), nil
}

// contains reports whether a value that was read from JSON has all of another
// one. Lists are compared as wholes: one that lost its last item is another.
func contains(have, part any) bool {
	h, ok := have.(map[string]any)
	p, both := part.(map[string]any)
	if !ok || !both {
		return part == nil || equality.Semantic.DeepEqual(have, part)
	}
	for key, value := range p {
		if !contains(h[key], value) {
			return false
		}
	}
	return true
}

// drop deletes objects of a job, once.
func (r *reconciler) drop(ctx context.Context, job v1.Job, objects []client.Object) error {
	for _, obj := range objects {
		key, gone := objectKey(obj), [sha256.Size]byte{}
		if r.ensured.is(job, key, gone) {
			continue
		}
		have := obj.DeepCopyObject().(client.Object)
		err := r.live.Get(ctx, client.ObjectKeyFromObject(obj), have)
		if err == nil && metav1.IsControlledBy(have, job) {
			err = r.client.Delete(ctx, have)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot delete %s of %s/%s: %w", key, job.GetNamespace(), job.GetName(), err)
		}
		r.ensured.set(job, key, gone)
	}
	return nil
}

// objectKey tells a job's objects apart.
func objectKey(obj client.Object) string {
	return fmt.Sprintf("%T %s/%s", obj, obj.GetObjectKind().GroupVersionKind().Kind, obj.GetName())
}

// contents remembers the written content of jobs' objects.
type contents struct {
	mu   sync.Mutex
	jobs map[types.NamespacedName]content
}

// content is the written content of one job's objects, by name.
type content struct {
	job    types.UID
	hashes map[string][sha256.Size]byte
}

func (c *contents) is(job v1.Job, key string, hash [sha256.Size]byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.jobs[client.ObjectKeyFromObject(job)]
	have, ok := of.hashes[key]
	return ok && of.job == job.GetUID() && have == hash
}

func (c *contents) set(job v1.Job, key string, hash [sha256.Size]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := client.ObjectKeyFromObject(job)
	if c.jobs == nil {
		c.jobs = map[types.NamespacedName]content{}
	}
	if c.jobs[name].job != job.GetUID() {
		c.jobs[name] = content{job.GetUID(), map[string][sha256.Size]byte{}}
	}
	c.jobs[name].hashes[key] = hash
}

func (c *contents) forget(job types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.jobs, job)
}

// objects returns what a job needs besides Pods and Services: its checkpoints, and
// what its framework needs.
func objects(f Framework, job v1.Job, pods map[Replica]*corev1.Pod) []client.Object {
	all := f.Objects(job, pods)
	if c := job.Policy().Checkpoint; c != nil {
		claim := checkpoint.Claim(job.GetName(), c)
		claim.ObjectMeta = metadata(job, claim.Name, nil)
		all = append(all, claim)
	}
	return all
}

// label adds the labels of its job to an object, by which it is watched.
func label(job v1.Job, obj client.Object) {
	all := map[string]string{}
	maps.Copy(all, obj.GetLabels())
	maps.Copy(all, jobLabels(job))
	obj.SetLabels(all)
}
