// SPDX-License-Identifier: Apache-2.0

package podlog

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// candidate is a Pod whose log may be the one that is asked for.
type candidate struct {
	name    string
	primary bool   // a trial says that this Pod's metrics count
	role    string // "master", "worker", "node", …; "" where there are no roles
	index   int
	created time.Time
	pod     *corev1.Pod // nil for a Pod that is gone and left its log
}

// candidateOf is a Pod that exists. primary are the labels of the Pods that count; none for all.
func (kinds Kinds) candidateOf(pod *corev1.Pod, primary map[string]string) candidate {
	c := candidate{name: pod.Name, created: pod.CreationTimestamp.Time, pod: pod}
	c.primary = labels.SelectorFromSet(primary).Matches(labels.Set(pod.Labels))
	index := ""
	for _, k := range kinds {
		c.role, index = cmp.Or(c.role, pod.Labels[k.RoleLabel]), cmp.Or(index, pod.Labels[k.IndexLabel])
	}
	index = cmp.Or(index, pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	c.index, _ = strconv.Atoi(index) // no index is the first
	return c
}

// podOf are the ways in which the Pods of an object are named after it, by what follows its name:
// -xxxxx by a Job, -0-xxxxx by an indexed one; -master-0 or -launcher by a training job;
// -node-0-1-xxxxx by a JobSet. The groups are a role and an index.
var podOf = []*regexp.Regexp{
	regexp.MustCompile(`^()(?:-(\d+))?(?:-[a-z0-9]{5})?$`),
	regexp.MustCompile(`^-([a-z]+)-(\d+)$`),
	regexp.MustCompile(`^-(launcher)()$`),
	regexp.MustCompile(`^-([a-z]+(?:-[a-z]+)*)-\d+-(\d+)-[a-z0-9]{5}$`),
}

// recordedAs reports whether a Pod of this name was made for the object, and what its name tells.
func recordedAs(pod, object string, written time.Time) (candidate, bool) {
	rest, ok := strings.CutPrefix(pod, object)
	if !ok {
		return candidate{}, false
	}
	for _, form := range podOf {
		if parts := form.FindStringSubmatch(rest); parts != nil {
			c := candidate{name: pod, role: parts[1], created: written}
			c.index, _ = strconv.Atoi(parts[2]) // none is the first
			return c, true
		}
	}
	return candidate{}, false
}

// rankOf orders roles: who leads prints the metrics, parameter servers and initializers do not.
func rankOf(role string) int {
	switch role {
	case "master", "chief", "launcher":
		return 0
	case "", "worker", "node":
		return 1
	}
	return 2
}

// order sorts Pods, the one whose log is wanted most first: the one that leads, and of several runs
// of the same the newest.
func order(pods []candidate) {
	slices.SortFunc(pods, func(a, b candidate) int {
		if a.primary != b.primary {
			if a.primary {
				return -1
			}
			return 1
		}
		return cmp.Or(
			cmp.Compare(rankOf(a.role), rankOf(b.role)), cmp.Compare(a.index, b.index),
			b.created.Compare(a.created), cmp.Compare(a.name, b.name),
		)
	})
}

// mainContainer returns the container of a Pod whose log to show: while none has started, the one
// that blocks the others; else the hinted one, if the Pod has it, or the Pod's default.
func mainContainer(pod *corev1.Pod, hint string) string {
	for _, s := range pod.Status.InitContainerStatuses {
		if ended := s.State.Terminated; ended != nil && ended.ExitCode != 0 || ended == nil && s.LastTerminationState.Terminated != nil {
			if !slices.ContainsFunc(pod.Status.ContainerStatuses, started) {
				return s.Name
			}
		}
	}
	for _, name := range []string{hint, pod.Annotations["kubectl.kubernetes.io/default-container"]} {
		if name != "" && slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name }) {
			return name
		}
	}
	if len(pod.Spec.Containers) == 0 {
		return ""
	}
	return pod.Spec.Containers[0].Name
}

// started reports whether a container has a log.
func started(s corev1.ContainerStatus) bool {
	return s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil
}

// waitsFor says why a container has not started; "" if it has, or nothing is known.
func waitsFor(pod *corev1.Pod, container string) string {
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if s.Name != container {
			continue
		}
		if started(s) {
			return ""
		}
		if w := s.State.Waiting; w != nil {
			return strings.TrimSuffix(fmt.Sprintf("%s: %s", w.Reason, w.Message), ": ")
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return strings.TrimSuffix(fmt.Sprintf("%s: %s", c.Reason, c.Message), ": ")
		}
	}
	return cmp.Or(pod.Status.Message, "it has not started yet")
}
