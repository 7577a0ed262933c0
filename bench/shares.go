// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// components are the parts of a server, each with words that the stack of a
// sample of it has. The first one that fits counts.
var components = []struct {
	name  string
	words []string
}{
	{"garbage collection", []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep", "runtime.bgscavenge", "runtime.gcStart"}},
	{"etcd", []string{"go.etcd.io/etcd/server", "go.etcd.io/bbolt", "go.etcd.io/raft"}},
	{"kube-scheduler, gangs", []string{"k8s.io/kubernetes/pkg/scheduler", "diwan.dev/diwan/internal/scheduling/gang"}},
	{"Diwan's reconcilers", []string{
		"diwan/internal/tuning/experiment", "diwan/internal/tuning/suggestion", "diwan/internal/tuning/trial.", "diwan/internal/tuning/optimizationjob",
		"diwan/internal/training/trainingjob", "diwan/internal/training/trainjob", "diwan/internal/training/jobset", "diwan/internal/platform/deadnode",
	}},
	{"Diwan's webhooks, and the calls of them", []string{"diwan.dev/diwan/internal/platform/admission", "diwan.dev/diwan/internal/tuning/admission", "diwan.dev/diwan/internal/training/admission", "controller-runtime/pkg/webhook", "admission/plugin/webhook"}},
	{"Kubernetes' controllers", []string{"k8s.io/kubernetes/pkg/controller", "k8s.io/endpointslice"}},
	{"the node", []string{"diwan.dev/diwan/internal/platform/node"}},
	{"API server: watches", []string{"storage/cacher.(*Cacher)", "storage/cacher.(*cacheWatcher)", "storage/cacher.(*watchCache)", "handlers.(*WatchServer)", "storage/etcd3.(*watchChan)"}},
	{"API server: custom resources", []string{"k8s.io/apiextensions-apiserver"}},
	{"API server: managed fields", []string{"k8s.io/apimachinery/pkg/util/managedfields"}},
	{"API server: objects to etcd and back", []string{"registry/generic/registry", "storage/etcd3"}},
	{"API server: all else", []string{"k8s.io/apiserver", "k8s.io/kube-aggregator", "k8s.io/kubernetes/"}},
	{"client of etcd", []string{"google.golang.org/grpc", "go.etcd.io/etcd/client"}},
	{"HTTP and TLS", []string{"net/http", "crypto/tls", "golang.org/x/net/http2"}},
	{"caches of clients", []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"}},
}

// others is what no component has.
const others = "Go's scheduler, and others"

// shares reads a profile of the processor and returns for each component what
// part of the time is its own, 0 to 1.
func shares(ctx context.Context, profile string) (map[string]float64, error) {
	text, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-traces", profile).Output()
	if err != nil {
		return nil, fmt.Errorf("cannot read profile %s: %w", profile, err)
	}
	parts, all := map[string]float64{}, 0.0
	for _, sample := range strings.Split(string(text), "-----------+")[1:] {
		_, stack, _ := strings.Cut(sample, "\n")
		took, _, _ := strings.Cut(strings.TrimSpace(stack), " ")
		duration, err := time.ParseDuration(took)
		if err != nil {
			continue // the end of the table, or a label
		}
		parts[component(stack)] += duration.Seconds()
		all += duration.Seconds()
	}
	for name := range parts {
		parts[name] /= all
	}
	return parts, nil
}

// component is the one that a stack belongs to.
func component(stack string) string {
	for _, c := range components {
		if slices.ContainsFunc(c.words, func(word string) bool { return strings.Contains(stack, word) }) {
			return c.name
		}
	}
	return others
}

// shareTable is a table of the components, those with most of the first
// column's time first. heads are those of the columns.
func shareTable(heads []string, columns ...map[string]float64) [][]string {
	names := []string{others}
	for _, c := range components {
		names = append(names, c.name)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(columns[0][b], columns[0][a]) })
	rows := [][]string{append([]string{"processor time of"}, heads...)}
	for _, name := range names {
		row := []string{name}
		for _, column := range columns {
			row = append(row, fmt.Sprintf("%.1f %%", 100*column[name]))
		}
		rows = append(rows, row)
	}
	return rows
}
