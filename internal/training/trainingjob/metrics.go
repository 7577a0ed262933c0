// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// Metrics counts job outcomes, by namespace and framework, under the training
// operator's names; MPIJobs of v2beta1 also under the MPI operator's.
type Metrics struct {
	created, deleted, successful, failed, restarted *prometheus.CounterVec
	mpiCreated, mpiSuccessful, mpiFailed            *prometheus.CounterVec
	mpiInfo                                         *prometheus.GaugeVec
}

// NewMetrics registers the metrics. Where they are registered already, by
// another manager in this process, those are used.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{}
	var errs []error
	counter := func(into **prometheus.CounterVec, name, help string, labels ...string) {
		c, err := register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
		*into, errs = c, append(errs, err)
	}
	for name, into := range map[string]**prometheus.CounterVec{
		"created": &m.created, "deleted": &m.deleted, "successful": &m.successful, "failed": &m.failed, "restarted": &m.restarted,
	} {
		counter(into, "training_operator_jobs_"+name+"_total", "Counts number of jobs "+name, "job_namespace", "framework")
	}
	for name, into := range map[string]**prometheus.CounterVec{"created": &m.mpiCreated, "successful": &m.mpiSuccessful, "failed": &m.mpiFailed} {
		counter(into, "mpi_operator_jobs_"+name+"_total", "Counts number of MPI jobs "+name)
	}
	info, err := register(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "mpi_operator_job_info", Help: "Information about MPIJob"},
		[]string{"launcher", "namespace"}))
	m.mpiInfo = info
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("cannot register the metrics of training jobs: %w", err)
	}
	return m, nil
}

// register registers a metric, or returns the one that is registered already.
func register[T prometheus.Collector](registerer prometheus.Registerer, metric T) (T, error) {
	err := registerer.Register(metric)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		metric, _ = already.ExistingCollector.(T)
		return metric, nil
	}
	return metric, err
}

// observe counts the change in a job's status.
func (m *Metrics) observe(job v1.Job, before, after *v1.JobStatus) {
	of := []string{job.GetNamespace(), job.Traits().Framework}
	first, succeeded := before.Condition(v1.JobCreated) == nil, !before.Is(v1.JobSucceeded) && after.Is(v1.JobSucceeded)
	failed := !before.Is(v1.JobFailed) && after.Is(v1.JobFailed)
	add(m.created, first, of...)
	add(m.successful, succeeded, of...)
	add(m.failed, failed, of...)
	m.restarted.WithLabelValues(of...).Add(float64(max(after.Retries()-before.Retries(), 0)))
	if v2beta1(job) != nil {
		add(m.mpiCreated, first)
		add(m.mpiSuccessful, succeeded)
		add(m.mpiFailed, failed)
	}
}

// add counts what has happened.
func add(c *prometheus.CounterVec, happened bool, labels ...string) {
	if happened {
		c.WithLabelValues(labels...).Inc()
	}
}

// launched records, at each reconcile, a job with a launcher.
func (m *Metrics) launched(j *v1.MPIJob) {
	m.mpiInfo.WithLabelValues(launcherName(j), j.Namespace).Set(1)
}

// forget records that a job of a kind is gone.
func (m *Metrics) forget(kind v1.Job, job types.NamespacedName) {
	if _, ok := kind.(*v1.MPIJob); !ok {
		return
	}
	m.mpiInfo.DeleteLabelValues(v1.ReplicaName(job.Name, v1.MPILauncher, 0), job.Namespace)
}
