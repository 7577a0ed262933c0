// SPDX-License-Identifier: Apache-2.0

package trainingjob

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	v1 "diwan.dev/diwan/api/kubeflow/v1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// read returns the job in a manifest, with its defaults, and its framework.
func read(t testing.TB, manifest string) (Framework, v1.Job) {
	t.Helper()
	var head struct{ Kind string }
	if err := yaml.Unmarshal([]byte(manifest), &head); err != nil {
		t.Fatal(err)
	}
	for _, f := range Frameworks() {
		job := f.New()
		if job.Traits().Kind != head.Kind {
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(manifest), job); err != nil {
			t.Fatal(err)
		}
		if job.GetNamespace() == "" {
			job.SetNamespace("ns")
		}
		if job.GetName() == "" {
			job.SetName("j")
		}
		if errs := v1.Validate(job); len(errs) > 0 {
			t.Fatalf("the job is not valid: %v", errs)
		}
		v1.SetDefaults(job)
		return f, job
	}
	t.Fatalf("no kind %q", head.Kind)
	return nil, nil
}

// podOf makes a Pod from its description: "worker-0 Failed 137 restarts=2
// leaving deleting".
func podOf(t testing.TB, f Framework, job v1.Job, description string) *corev1.Pod {
	t.Helper()
	words := strings.Fields(description)
	name, number, _ := strings.Cut(words[0], "-")
	index, err := strconv.Atoi(number)
	if err != nil {
		t.Fatalf("%q: %v", description, err)
	}
	replica := Replica{Index: index}
	for kind := range job.Replicas() {
		if strings.EqualFold(string(kind), name) {
			replica.Type = kind
		}
	}
	p := newPod(f, job, replica)
	p.UID = types.UID(words[0])
	p.Status.Phase = corev1.PodPhase(words[1])
	main := corev1.ContainerStatus{Name: job.Traits().Main(&p.Spec).Name}
	for _, word := range words[2:] {
		key, value, _ := strings.Cut(word, "=")
		switch n, err := strconv.Atoi(key); {
		case err == nil:
			main.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: int32(n), Reason: "Error"}
		case key == "restarts":
			n, _ := strconv.Atoi(value)
			main.RestartCount = int32(n)
		case key == "leaving":
			job.State().LeavingPods = append(job.State().LeavingPods, p.UID)
		case key == "deleting":
			p.DeletionTimestamp = &metav1.Time{Time: noon}
		case key == "lost":
			p.Status.Reason = "Evicted"
		default:
			t.Fatalf("%q: what is %q?", description, word)
		}
	}
	if main.State.Terminated != nil || main.RestartCount > 0 {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{main}
	}
	return p
}

// conditions writes conditions as one line: what is False in brackets.
func conditions(s *v1.JobStatus) string {
	var words []string
	for _, c := range s.Conditions {
		word := string(c.Type)
		if c.Status != corev1.ConditionTrue {
			word = "(" + word + ")"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// summary writes what a plan changes as one line.
func summary(job v1.Job, p plan) string {
	s := job.State()
	if p.status != nil {
		s = p.status
	}
	words := []string{conditions(s)}
	add := func(what string, names []string) {
		if len(names) > 0 {
			slices.Sort(names)
			words = append(words, what+"="+strings.Join(names, ","))
		}
	}
	var create, gone, services []string
	for _, r := range p.create {
		create = append(create, strings.ToLower(string(r.Type))+"-"+strconv.Itoa(r.Index))
	}
	for _, pod := range p.delete {
		gone = append(gone, string(pod.UID))
	}
	for _, service := range p.deleteServices {
		services = append(services, strings.TrimPrefix(service.Name, job.GetName()+"-"))
	}
	add("create", create)
	add("delete", gone)
	add("deleteServices", services)
	if s.Restarts > 0 {
		words = append(words, fmt.Sprintf("restarts=%d", s.Restarts))
	}
	if n := s.Retries() - s.Restarts; n > 0 {
		words = append(words, fmt.Sprintf("inPlace=%d", n))
	}
	if p.after > 0 {
		words = append(words, "after="+p.after.String())
	}
	if p.remove {
		words = append(words, "remove")
	}
	return strings.Join(words, " ")
}
