// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// write sends a status to the API server. It reports whether it, or a newer Pod,
// arrived. If someone else changed the Pod in between, the next decision uses
// the newer Pod.
func (w *worker) write(ctx context.Context, status corev1.PodStatus) bool {
	pod := w.current().DeepCopy()
	pod.Status = status
	w.annotate(pod)
	pods := w.node.cfg.Client.CoreV1().Pods(pod.Namespace)
	got, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		got, err = pods.Get(ctx, pod.Name, metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err) || err == nil && got.UID != pod.UID:
		w.change(func() { w.absent = true })
		return true
	case err != nil:
		if ctx.Err() == nil {
			w.node.cfg.Log.Error(err, "cannot write the status of a Pod; retrying", "namespace", pod.Namespace, "pod", pod.Name)
		}
		return false
	}
	got.ManagedFields = nil
	w.change(func() {
		if newer(got.ResourceVersion, w.pod.ResourceVersion) {
			w.pod = got
			w.know(got)
		}
	})
	return true
}

// finish releases everything that the Pod had, when the API server knows its
// end. A terminating Pod is deleted now. It reports whether the worker is
// done; failed cleanups are retried.
func (w *worker) finish(ctx context.Context) bool {
	w.mu.Lock()
	pod, absent := w.pod, w.absent
	w.mu.Unlock()
	if err := w.release(pod); err != nil {
		w.node.cfg.Log.Error(err, "cannot clean up after a Pod; retrying", "namespace", pod.Namespace, "pod", pod.Name)
		time.AfterFunc(time.Second, w.poke)
		return false
	}
	if pod.DeletionTimestamp == nil || absent {
		return true
	}
	if left := deletesItself(pod, clock()); left > 0 {
		time.AfterFunc(left, w.poke)
		return false
	}
	now := int64(0)
	err := w.node.cfg.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		w.node.cfg.Log.Error(err, "cannot delete a Pod that has ended; retrying", "namespace", pod.Namespace, "pod", pod.Name)
		time.AfterFunc(time.Second, w.poke)
		return false
	}
	return true
}

// selfDeletion is how long the API server has for the second of the two writes
// by which it deletes a Pod without grace.
const selfDeletion = 2 * time.Second

// deletesItself tells how long to wait for the API server to delete a Pod that
// was marked without grace, as those that have ended are: it does so itself,
// unless it dies between its two writes.
func deletesItself(pod *corev1.Pod, now time.Time) time.Duration {
	if grace := pod.DeletionGracePeriodSeconds; grace == nil || *grace > 0 {
		return 0
	}
	return pod.DeletionTimestamp.Add(selfDeletion).Sub(now)
}

// release removes the Pod's runs, volumes, network and state.
func (w *worker) release(pod *corev1.Pod) error {
	var errs []error
	w.mu.Lock()
	for _, e := range w.containers {
		if e.run != nil {
			errs = append(errs, e.run.Remove())
		}
	}
	w.mu.Unlock()
	if w.node.cfg.Hosts != nil {
		w.node.cfg.Hosts.Remove(string(pod.UID))
	}
	w.node.gpus.release(string(pod.UID))
	errs = append(errs, w.node.releasePod(string(pod.UID)))
	return errors.Join(errs...)
}

// releasePod removes the resources of a Pod without processes from this
// machine.
func (n *Node) releasePod(uid string) error {
	err := errors.Join(n.volumes.Release(uid), n.cfg.Network.Release(uid))
	if err != nil {
		return err
	}
	return os.RemoveAll(n.podPath(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: typesUID(uid)}}))
}

// leave ends the worker with the node: containers are interrupted, or left.
func (w *worker) leave() {
	if w.node.cfg.LeaveRunning {
		return
	}
	grace := w.node.cfg.StopGrace
	if s := w.current().Spec.TerminationGracePeriodSeconds; s != nil {
		grace = min(grace, time.Duration(*s)*time.Second)
	}
	w.tasks.Wait() // a container that was being started now exists
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, e := range w.containers {
		if run := e.run; run != nil && !e.running.IsZero() {
			w.tasks.Go(func() { w.node.interrupt(run, grace, name) })
		}
	}
}
