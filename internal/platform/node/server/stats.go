// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Machine is what the machine has used: CPU time since it started, and
// memory now.
func Machine() (cpu time.Duration, memory uint64) {
	m := readMachine()
	return m.cpu, m.memoryUsed
}

// pods lists the Pods of the node.
func (s *Server) pods(w http.ResponseWriter, _ *http.Request) {
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []corev1.Pod{}}
	for _, p := range s.cfg.Backend.Pods() {
		list.Items = append(list.Items, *p)
	}
	writeJSON(w, list)
}

// summary answers /stats/summary with what is known: CPU and memory of the
// node and its containers.
func (s *Server) summary(w http.ResponseWriter, r *http.Request) {
	usage, err := s.usage(r)
	if err != nil {
		fail(w, err, http.StatusInternalServerError)
		return
	}
	now := metav1.Now()
	m := readMachine()
	out := statsv1.Summary{
		Node: statsv1.NodeStats{
			NodeName:  s.cfg.NodeName,
			StartTime: metav1.NewTime(m.booted),
			CPU:       cpuStats(now, m.cpu),
			Memory:    memoryStats(now, m.memoryUsed),
		},
		Pods: []statsv1.PodStats{},
	}
	for _, pod := range byPod(usage) {
		first := pod[0]
		ps := statsv1.PodStats{
			PodRef:    statsv1.PodReference{Namespace: first.Namespace, Name: first.Pod, UID: first.PodUID},
			StartTime: metav1.NewTime(first.Started),
		}
		var cpu time.Duration
		var memory uint64
		for _, c := range pod {
			cpu, memory = cpu+c.CPU, memory+c.Memory
			ps.Containers = append(ps.Containers, statsv1.ContainerStats{
				Name: c.Container, StartTime: metav1.NewTime(c.Started),
				CPU: cpuStats(now, c.CPU), Memory: memoryStats(now, c.Memory),
			})
		}
		ps.CPU, ps.Memory = cpuStats(now, cpu), memoryStats(now, memory)
		out.Pods = append(out.Pods, ps)
	}
	writeJSON(w, out)
}

func cpuStats(now metav1.Time, used time.Duration) *statsv1.CPUStats {
	nanoseconds := uint64(used)
	return &statsv1.CPUStats{Time: now, UsageCoreNanoSeconds: &nanoseconds}
}

func memoryStats(now metav1.Time, used uint64) *statsv1.MemoryStats {
	return &statsv1.MemoryStats{Time: now, WorkingSetBytes: &used, UsageBytes: &used}
}

// usage asks the backend, in the order of namespace, Pod and container.
func (s *Server) usage(r *http.Request) ([]Usage, error) {
	usage, err := s.cfg.Backend.Usage(r.Context())
	if err != nil {
		return nil, fmt.Errorf("cannot read usage: %w", err)
	}
	key := func(u Usage) string { return strings.Join([]string{u.Namespace, u.Pod, u.Container}, "\x00") }
	sort.Slice(usage, func(i, j int) bool { return key(usage[i]) < key(usage[j]) })
	return usage, nil
}

// byPod divides sorted usage into the Pods' parts.
func byPod(usage []Usage) [][]Usage {
	var pods [][]Usage
	for i, u := range usage {
		if i == 0 || u.Namespace != usage[i-1].Namespace || u.Pod != usage[i-1].Pod {
			pods = append(pods, nil)
		}
		pods[len(pods)-1] = append(pods[len(pods)-1], u)
	}
	return pods
}

// metrics answers /metrics/resource, which metrics-server reads for kubectl top.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	usage, err := s.usage(r)
	if err != nil {
		fail(w, err, http.StatusInternalServerError)
		return
	}
	m := readMachine()
	var b strings.Builder
	family(&b, "node_cpu_usage_seconds_total", "counter")
	sample(&b, "node_cpu_usage_seconds_total", "", m.cpu.Seconds())
	family(&b, "node_memory_working_set_bytes", "gauge")
	sample(&b, "node_memory_working_set_bytes", "", float64(m.memoryUsed))
	containers := []struct {
		name, kind string
		value      func(Usage) float64
	}{
		{"container_cpu_usage_seconds_total", "counter", func(u Usage) float64 { return u.CPU.Seconds() }},
		{"container_memory_working_set_bytes", "gauge", func(u Usage) float64 { return float64(u.Memory) }},
		{"container_start_time_seconds", "gauge", func(u Usage) float64 { return float64(u.Started.UnixNano()) / 1e9 }},
	}
	for _, c := range containers {
		family(&b, c.name, c.kind)
		for _, u := range usage {
			labels := fmt.Sprintf(`{container=%q,namespace=%q,pod=%q}`, u.Container, u.Namespace, u.Pod)
			sample(&b, c.name, labels, c.value(u))
		}
	}
	family(&b, "resource_scrape_error", "gauge")
	sample(&b, "resource_scrape_error", "", 0)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	fmt.Fprint(w, b.String())
}

func family(b *strings.Builder, name, kind string) { fmt.Fprintf(b, "# TYPE %s %s\n", name, kind) }

func sample(b *strings.Builder, name, labels string, value float64) {
	fmt.Fprintf(b, "%s%s %s\n", name, labels, strconv.FormatFloat(value, 'g', -1, 64))
}

func writeJSON(w http.ResponseWriter, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		fail(w, err, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(text)
}
