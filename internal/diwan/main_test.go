// SPDX-License-Identifier: Apache-2.0

package diwan_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/diwan"
	"diwan.dev/diwan/internal/testing/clustertest"
	"diwan.dev/diwan/observation"
	"diwan.dev/diwan/observation/sqlite"
)

var cluster clustertest.Shared

func TestMain(m *testing.M) { os.Exit(cluster.Run(m)) }

// connect returns a new namespace of the cluster, and a client that knows all
// kinds of the operator's.
func connect(t *testing.T) (*clustertest.Cluster, client.WithWatch, string) {
	t.Helper()
	c, namespace := cluster.Namespace(t)
	scheme, err := diwan.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.NewWithWatch(c.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c, api, namespace
}

// lab is a namespace of the cluster in which the test itself is the node: it
// decides how each Pod ends and what it reports.
type lab struct {
	t         *testing.T
	client    client.WithWatch
	store     observation.Store
	namespace string
}

// program is what a Pod does: it returns the loss that it reports, "" for
// none, and its exit code.
type program func(ctx context.Context, pod *corev1.Pod) (loss string, exit int32)

func newLab(t *testing.T, run program) *lab {
	t.Helper()
	t.Parallel()
	c, api, namespace := connect(t)
	store, err := sqlite.Open(t.Context(), c.Store())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	l := &lab{t: t, client: api, store: store, namespace: namespace}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.serve(ctx, run)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return l
}

// serve runs each Pod that appears.
func (l *lab) serve(ctx context.Context, run program) {
	pods, err := l.client.Watch(ctx, &corev1.PodList{}, client.InNamespace(l.namespace))
	if ctx.Err() != nil {
		return // the test was over before the first Pod
	}
	if err != nil {
		l.t.Error(err)
		return
	}
	defer pods.Stop()
	running := map[string]context.CancelFunc{}
	for event := range pods.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			continue
		}
		stop, known := running[string(pod.UID)]
		switch {
		case pod.DeletionTimestamp != nil && known:
			stop()
		case !known:
			life, cancel := context.WithCancel(ctx)
			running[string(pod.UID)] = cancel
			go l.live(ctx, life, pod, run)
		}
	}
	for _, stop := range running {
		stop()
	}
}

// live is the life of a Pod.
func (l *lab) live(ctx, life context.Context, pod *corev1.Pod, run program) {
	loss, exit := run(life, pod)
	trial := observation.Trial{Namespace: pod.Namespace, Name: pod.Labels[v1beta1.LabelTrial]}
	if loss != "" && life.Err() == nil {
		err := l.store.Append(ctx, trial, observation.Batch{
			Source: string(pod.UID), To: 1,
			Points: []observation.Point{{Time: time.Now(), Metric: "loss", Value: loss}},
		})
		if err != nil && ctx.Err() == nil {
			l.t.Error(err)
		}
	}
	phase := corev1.PodSucceeded
	if exit != 0 || life.Err() != nil {
		phase = corev1.PodFailed
	}
	end := pod.DeepCopy()
	end.Status.Phase = phase
	err := l.client.Status().Patch(ctx, end, client.MergeFrom(pod))
	if client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
		l.t.Error(err)
	}
	if life.Err() != nil {
		err := l.client.Delete(ctx, pod, client.GracePeriodSeconds(0))
		if client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
			l.t.Error(err)
		}
	}
}

// parameterOf is the value of the parameter x with which a Pod was started.
func parameterOf(pod *corev1.Pod) string { return pod.Spec.Containers[0].Args[0] }

// report is the program that reports its parameter as loss.
func report(_ context.Context, pod *corev1.Pod) (string, int32) { return parameterOf(pod), 0 }

// experiment creates a manifest.
func (l *lab) experiment(name string, parallel, limit int32, changes ...func(*v1beta1.Experiment)) *v1beta1.Experiment {
	l.t.Helper()
	e := l.manifest(name, parallel, limit, changes...)
	if err := l.client.Create(l.t.Context(), e); err != nil {
		l.t.Fatal(err)
	}
	return e
}

// manifest is an experiment that searches x in [1, 100] for the least loss.
func (l *lab) manifest(name string, parallel, limit int32, changes ...func(*v1beta1.Experiment)) *v1beta1.Experiment {
	l.t.Helper()
	job := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To(int32(0)),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				NodeSelector:  map[string]string{"diwan.dev/test": "the-test-is-the-node"},
				Containers: []corev1.Container{{
					Name: "training", Image: "none", Command: []string{"train"}, Args: []string{"${trialParameters.x}"},
				}},
			}},
		},
	}
	template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		l.t.Fatal(err)
	}
	delete(template, "status")
	unstructured.RemoveNestedField(template, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(template, "spec", "template", "metadata", "creationTimestamp")
	e := &v1beta1.Experiment{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name},
		Spec: v1beta1.ExperimentSpec{
			Objective: &v1beta1.ObjectiveSpec{Type: v1beta1.ObjectiveTypeMinimize, ObjectiveMetricName: "loss"},
			Algorithm: &v1beta1.AlgorithmSpec{AlgorithmName: "random"},
			Parameters: []v1beta1.ParameterSpec{{Name: "x", ParameterType: v1beta1.ParameterTypeInt,
				FeasibleSpace: v1beta1.FeasibleSpace{Min: "1", Max: "100"}}},
			ParallelTrialCount: &parallel,
			MaxTrialCount:      &limit,
			TrialTemplate: &v1beta1.TrialTemplate{
				PrimaryContainerName: "training",
				TrialParameters:      []v1beta1.TrialParameterSpec{{Name: "x", Reference: "x"}},
				TrialSource:          v1beta1.TrialSource{TrialSpec: &unstructured.Unstructured{Object: template}},
			},
		},
	}
	for _, change := range changes {
		change(e)
	}
	return e
}

// get reads an object anew.
func (l *lab) get(o client.Object) {
	l.t.Helper()
	if err := l.client.Get(l.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		l.t.Fatal(err)
	}
}

// trials are those of the namespace.
func (l *lab) trials() []v1beta1.Trial {
	l.t.Helper()
	var list v1beta1.TrialList
	if err := l.client.List(l.t.Context(), &list, client.InNamespace(l.namespace)); err != nil {
		l.t.Fatal(err)
	}
	return list.Items
}

// eventually waits until check returns "", which is what is still missing.
func (l *lab) eventually(check func() string) {
	l.t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		missing := check()
		if missing == "" {
			return
		}
		select {
		case <-deadline.C:
			l.t.Fatalf("still missing after a minute: %s", missing)
		case <-tick.C:
		}
	}
}

// waitFor waits until an experiment has a condition.
func (l *lab) waitFor(e *v1beta1.Experiment, condition v1beta1.ConditionType, reason string) {
	l.t.Helper()
	l.eventually(func() string {
		l.get(e)
		if c := e.Status.Conditions.Get(condition); e.Status.Conditions.IsTrue(condition) && c.Reason == reason {
			return ""
		}
		return fmt.Sprintf("condition %s for %s in %+v", condition, reason, e.Status)
	})
}
