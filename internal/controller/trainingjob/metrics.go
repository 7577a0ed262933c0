// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

// Metrics counts what becomes of jobs, by namespace and framework, under the
// training operator's names.
type Metrics struct {
	created, deleted, successful, failed, restarted *prometheus.CounterVec
}

// NewMetrics registers the metrics. Where they are registered already, by
// another manager in this process, those are used.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{}
	for name, into := range map[string]**prometheus.CounterVec{
		"created": &m.created, "deleted": &m.deleted, "successful": &m.successful, "failed": &m.failed, "restarted": &m.restarted,
	} {
		counter := prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "training_operator_jobs_" + name + "_total",
			Help: "Counts number of jobs " + name,
		}, []string{"job_namespace", "framework"})
		err := registerer.Register(counter)
		var already prometheus.AlreadyRegisteredError
		if errors.As(err, &already) {
			counter, _ = already.ExistingCollector.(*prometheus.CounterVec)
		} else if err != nil {
			return nil, fmt.Errorf("cannot register the metrics of training jobs: %w", err)
		}
		*into = counter
	}
	return m, nil
}

// observe counts what a write of a job's status tells.
func (m *Metrics) observe(job v1.Job, before, after *v1.JobStatus) {
	count := func(c *prometheus.CounterVec, n int32) {
		c.WithLabelValues(job.GetNamespace(), job.Traits().Framework).Add(float64(n))
	}
	if before.Condition(v1.JobCreated) == nil {
		count(m.created, 1)
	}
	if !before.Is(v1.JobSucceeded) && after.Is(v1.JobSucceeded) {
		count(m.successful, 1)
	}
	if !before.Is(v1.JobFailed) && after.Is(v1.JobFailed) {
		count(m.failed, 1)
	}
	count(m.restarted, max(after.Restarts-before.Restarts, 0))
}
